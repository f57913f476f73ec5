"""The editor's schema of `source:`: its name says which keys there are."""

import re
from typing import Any

import jsonschema
import pytest

from curvote.data.lookup import find_dataset
from curvote.data.registry import DATASETS
from curvote.pipeline.config.schema import editor_schema
from curvote.pipeline.config.yaml_document import as_yaml, parse_value
from tests.house import ROOT

SCHEMA = editor_schema()
VALID = jsonschema.Draft202012Validator(SCHEMA)
SHOWN = {
    page.name: page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}


def wrong(source: dict[str, Any]) -> list[str]:
    """Return what an editor marks in a pipeline with this source."""
    pipeline = {"source": source, "clients": {"train": 60}}
    found = VALID.iter_errors({"pipelines": {"one": pipeline}})
    return [error.message for error in found if "source" in error.absolute_path]


@pytest.mark.parametrize("name", DATASETS)
def test_every_source_is_completed_by_its_keys(name: str) -> None:
    """All that its parameters may say is known, nothing else is."""
    own = SCHEMA["$defs"][f"source.{name}"]
    assert own["properties"].keys() == find_dataset(name).Parameters.model_fields.keys()
    assert wrong({"name": name, "balance": [0.4, 0.6]}) == []
    (said,) = wrong({"name": name, "pth": "x"})
    assert "'pth' does not match" in said


def test_a_source_that_is_not_known_is_marked() -> None:
    """Its name is one of a list, so that an editor offers it."""
    assert any("'tabel' is not one of" in said for said in wrong({"name": "tabel"}))
    assert wrong({}) == ["'name' is a required property"]


def test_a_label_may_be_a_number_or_a_word() -> None:
    """As YAML reads it, and as curvote takes it."""
    for label in ("ill", 1, 1.0, True):
        assert not wrong({"name": "table", "positive": label})
    assert wrong({"name": "table", "positive": []})
    assert wrong({"name": "table", "bounds": {"age": [0]}})


def test_classes_are_offered_by_name() -> None:
    """Or all of them by one word, where somebody published the list."""
    for classes in ("all", ["sh", "iy"]):
        assert not wrong({"name": "phonemes", "classes": classes})
    assert wrong({"name": "phonemes", "classes": ["she", "iy"]})


def test_every_reference_is_there() -> None:
    """Parts of two sources that are called alike are kept apart."""
    text = as_yaml(SCHEMA)
    named = set(re.findall(r"#/\$defs/([\w.-]+)", text))
    assert named == named & SCHEMA["$defs"].keys()
    VALID.check_schema(SCHEMA)


@pytest.mark.parametrize("page", SHOWN)
def test_what_the_pages_show_is_marked_nowhere(page: str) -> None:
    """Each source in a block of YAML that stands there as a whole."""
    text = SHOWN[page].read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    for pipelines in map(parse_value, blocks):
        own = pipelines.values() if isinstance(pipelines, dict) else ()
        sources = [
            one["source"] for one in own if isinstance(one, dict) and "source" in one
        ]
        assert [wrong(source) for source in sources] == [[] for _ in sources]
