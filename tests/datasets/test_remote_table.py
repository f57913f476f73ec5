"""Tables that stay away: what a pipeline may state of them, in clear."""

import json
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from curvote.data import lookup
from curvote.data.tables.remote import TABLE, TableParameters
from curvote.pipeline.config.yaml_document import parse_value
from curvote.report.sentences import record_word

SOURCE = """
name: remote_table
servers: [cleveland, va-2, s_3]
features: {age: [20, 90], sex: [0, 1], "ST depression": [-3, 7.5]}
classes: ["no", "yes"]
record: patient
"""


def wrong(**said: Any) -> str:
    """Return what is wrong with a source that says something else."""
    with pytest.raises(ValidationError) as error:
        TableParameters.model_validate(parse_value(SOURCE) | said)
    details = error.value.errors()
    assert {detail["loc"][0] for detail in details} == {*said}
    return str(details[0]["msg"])


def test_what_is_stated_is_public() -> None:
    """Servers without sizes, features with bounds, classes in order; no record."""
    source = parse_value(SOURCE)
    _, stated = lookup.resolve_source(source)
    facts = json.loads(json.dumps(TABLE.facts(stated)))
    assert facts["servers"] == {"cleveland": None, "va-2": None, "s_3": None}
    assert facts["servers"] == lookup.servers(source)
    bounds = {f["name"]: (f["lower"], f["upper"]) for f in facts["features"]}
    assert bounds == {"age": (20, 90), "sex": (0, 1), "ST depression": (-3, 7.5)}
    assert facts["classes"] == ["no", "yes"] == [*(lookup.classes(source) or ())]
    assert record_word(facts) == "patient"
    assert lookup.is_remote(source)
    assert not lookup.drawn_per_server(source)
    columns = TABLE.clients(stated, 7, np.random.default_rng(1))
    assert columns["curve"].shape == (0, TABLE.width(stated))


@pytest.mark.parametrize("text", ["[true, false]", "[0, 1]"])
def test_yaml_words_that_are_no_texts_want_quotes(text: str) -> None:
    """An unquoted true or number is no class; no and off are texts in YAML 1.2."""
    assert "in quotes" in wrong(classes=parse_value(text))
    assert "in quotes" in wrong(record=parse_value(text)[0])


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"servers": []}, "give 1 or more"),
        ({"servers": ["a", "b", "a"]}, "a stands twice"),
        ({"servers": ["a.b"]}, "letters, digits"),
        ({"servers": ["-a"]}, "not - or _ first"),
        ({"servers": [True]}, "in quotes"),
        ({"features": {}}, "at least 1"),
        ({"features": {"age": [90, 20]}}, "below the second: age"),
        ({"features": {"age": [20, 20]}}, "below the second: age"),
        ({"features": {"age": [20, float("inf")]}}, "finite"),
        ({"features": {"age": [20, float("nan")]}}, "finite"),
        ({"features": {"age": [20]}}, "required"),
        ({"features": {False: [0, 1]}}, "put false in quotes"),
        ({"features": {" age": [0, 1]}}, "without margins"),
        ({"classes": ["no", "x" * 61]}, "1 to 60 characters"),
        ({"classes": ["no"]}, "give 2 or more"),
        ({"classes": ["no", "no"]}, "no stands twice"),
        ({"rows": 5}, "not permitted"),
    ],
)
def test_what_is_not_right_is_refused(said: dict[str, Any], message: str) -> None:
    """The key that is wrong is named, and what is wrong with it."""
    assert message in wrong(**said)
