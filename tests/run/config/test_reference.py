"""The reference of pipelines.yaml: each setting has a text, page and schema have it."""

import re
from collections.abc import Iterator
from typing import Any

import jsonschema

from curvote.data.registry import DATASETS
from curvote.pipeline.config.reference import (
    Setting,
    list_settings,
    setting_texts,
    text_key,
)
from curvote.pipeline.config.schema import editor_schema
from docs.making import pipelines

SCHEMA = editor_schema()
SETTINGS = list_settings(SCHEMA)
RIDDLES = re.compile(r"\b(arms?|twins?|wings?|folds?|passed over|the outside)\b")
NEEDED = "Write it in curvote/pipeline/config/settings.toml: "


def _properties(part: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield place and schema of each property, wherever the schema has one."""
    if isinstance(part, list):
        for inner in part:
            yield from _properties(inner, place)
    elif isinstance(part, dict):
        for name, inner in part.items():
            if name == "properties":
                yield from ((f"{place}.{key}", value) for key, value in inner.items())
            if name not in ("if", "examples", "default"):
                yield from _properties(inner, f"{place}.{name}")


def test_each_property_of_the_schema_has_a_description() -> None:
    """Through definitions, unions, lists and conditions; none is left to a guess."""
    missing = [s.path for s in SETTINGS if not s.text]
    blocks = "\n".join(f'["{path}"]\ntext = "..."' for path in missing)
    assert not missing, f"{len(missing)} settings have no text. {NEEDED}\n{blocks}"
    found = dict(_properties(SCHEMA, "schema"))
    bare = [place for place, own in found.items() if not own.get("description")]
    assert len(found) >= 309
    assert not bare, f"no path leads to {bare}: see `curvote.pipeline.config.reference`"


def test_no_text_is_stale_and_each_example_may_stand_in_the_file() -> None:
    """A text belongs to a setting, or to a source; examples pass the schema."""
    used = {text_key(setting.path) for setting in SETTINGS}
    sources = {f"source.{name}" for name in DATASETS}
    stale = sorted(setting_texts().keys() - used - sources)
    assert not stale, f"no setting reads these texts: {stale}"
    for key, entry in setting_texts().items():
        assert entry.keys() <= {"text", "unit", "examples"}, key
        prose = re.sub(r"`[^`]*`", "", entry["text"])
        assert not RIDDLES.search(prose), f"{key}: say it without {RIDDLES.pattern}"
        assert entry["text"].rstrip().endswith((".", "?")), key
    for setting in SETTINGS:
        form = jsonschema.Draft202012Validator(
            {**setting.schema, "$defs": SCHEMA["$defs"]}
        )
        for example in setting.examples:
            assert form.is_valid(example), f"{setting.path} is never {example!r}"


def test_the_page_is_made_from_the_texts() -> None:
    """`python -m docs.making.pipelines` writes it anew, and the schema."""
    page = pipelines.PAGE.read_text(encoding="utf-8")
    assert page == pipelines.text(), "run python -m docs.making.pipelines"
    for setting in SETTINGS:
        assert setting.text.replace("\n", " ").replace("|", r"\|") in page


def test_what_may_stand_there_is_said_in_words() -> None:
    """Kind, limits and choices come from the schema, never from a text."""
    values = {setting.path: setting.values for setting in SETTINGS}
    assert values["transfer.test"] == "whole number from 0 or number above 0 below 1"
    assert values["learners"] == "list of text or mapping"
    assert values["schedule"] == "mapping"
    assert Setting("a", {"enum": ["b", 1]}).values == "`b` or `1`"
