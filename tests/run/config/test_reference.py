"""The reference of pipelines.yaml: each setting has a text, page and schema have it."""

from collections.abc import Iterator
from typing import Any

import jsonschema

from curvote.data.registry import DATASETS
from curvote.pipeline.config import reference
from curvote.pipeline.config.schema import editor_schema

SCHEMA = editor_schema()
SETTINGS = reference.list_settings(SCHEMA)


def _properties(part: Any) -> Iterator[Any]:
    """Yield name and schema of each property, wherever the schema has one."""
    inner = part.items() if isinstance(part, dict) else enumerate(part)
    for name, value in inner:
        yield from value.items() if name == "properties" else ()
        if isinstance(value, dict | list) and name not in ("if", "default"):
            yield from _properties(value)


def test_each_property_of_the_schema_has_a_description() -> None:
    """Through definitions, unions, lists and conditions; none is left to a guess."""
    missing = [f'["{s.path}"]' for s in SETTINGS if not s.text]
    assert not missing, f"curvote/pipeline/config/settings.toml lacks {missing}"
    found = [*_properties(SCHEMA)]
    assert len(found) >= 309
    assert not [name for name, form in found if not form.get("description")]


def test_no_text_is_stale_and_each_example_may_stand_in_the_file() -> None:
    """A text belongs to a setting, or to a source; examples pass the schema."""
    used = {reference.text_key(setting.path) for setting in SETTINGS}
    used |= {f"source.{name}" for name in DATASETS}
    stale = reference.setting_texts().keys() - used
    assert not stale, f"no setting reads these texts: {sorted(stale)}"
    for setting in SETTINGS:
        form = setting.schema | {"$defs": SCHEMA["$defs"]}
        valid = jsonschema.Draft202012Validator(form).is_valid
        assert all(map(valid, setting.examples)), f"{setting.path}: {setting.examples}"


def test_the_values_of_a_setting_are_words() -> None:
    """Also where a union or a list takes them."""
    values = {setting.path: setting.values for setting in SETTINGS}
    assert values["transfer.test"] == "whole number from 0 or number above 0 below 1"
    assert values["learners"] == "list of text or mapping"
