"""A public table whose labels are elsewhere: names, numbers, texts, nothing secret."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from curvote.base.errors import UserError
from curvote.data import lookup
from curvote.data.tables.remote import LABELS, LabelsParameters

GIVEN: dict[str, Any] = {
    "path": "people.csv",
    "record": "who",
    "features": ["age", "town", "iron"],
    "categories": {"town": ["north", "south"]},
    "classes": ["low", "mid", "high"],
}
TABLE = "who,iron,town,age,more\n7.0,1.5,south,30,x\n b ,,north,50,y\nc,2.5,NA,?,z\n"


def parameters(**changes: Any) -> LabelsParameters:
    """Return what a pipeline says of its source."""
    return LabelsParameters.model_validate(GIVEN | changes)


def written(root: Path, text: str = TABLE) -> dict[str, Path]:
    """Write the public table."""
    (root / "people.csv").write_text(text)
    return {"path": root / "people.csv"}


def test_records_have_names_and_numbers_and_no_label(tmp_path: Path) -> None:
    """A text becomes a column of 0 and 1 for each category; what is missing, public."""
    paths = written(tmp_path)
    found = LABELS.clients(parameters(), paths)
    assert found["record"].tolist() == ["7", "b", "c"]
    assert found["label"].tolist() == [-1, -1, -1]
    expected = [[30, 0, 1, 1.5], [50, 1, 0, 2.0], [40, 0, 0, 2.5]]
    np.testing.assert_array_equal(found["curve"], expected)
    told = LABELS.facts(parameters(), paths)
    names = ["age", "town = north", "town = south", "iron"]
    assert [feature["name"] for feature in told["features"]] == names
    assert told["classes"] == ["low", "mid", "high"]
    assert told["categories"] == {"town": ["north", "south"]}
    assert (told["rows"], told["counts"]) == (3, {})
    assert LABELS.width(parameters()) == 4


def test_its_labels_are_elsewhere() -> None:
    """Envelopes bring them; the classes are the pipeline's."""
    source = GIVEN | {"name": "remote_labels"}
    assert lookup.is_remote(source)
    assert lookup.classes(source) == ("low", "mid", "high")


def test_every_problem_of_the_file_is_told_at_once(tmp_path: Path) -> None:
    """With its lines."""
    text = "who,iron,town,age\na,x,east,1\na,1,south,inf\n,1,south,2\n"
    text += f"{'b' * 61},1,north,3\n"
    with pytest.raises(UserError) as caught:
        LABELS.clients(parameters(), written(tmp_path, text))
    for words in (
        "iron: no finite number in line 2.",
        "town: none of north, south in line 2.",
        "age: no finite number in line 3.",
        "who: a record that stood there before in line 3.",
        "who: nothing in line 4.",
        "who: no plain text of at most 60 characters in line 5.",
    ):
        assert words in str(caught.value)
    for text, words in (
        ("who,iron,town\na,1,south\n", "no column 'age'"),
        ("who,iron,town,age\n", "no row"),
        ("who,iron,town,age\na,,south,1\n", "iron: every value is missing"),
    ):
        with pytest.raises(UserError, match=words):
            LABELS.clients(parameters(), written(tmp_path, text))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"features": []}, "1 or more"),
        ({"features": ["age", "age"]}, "stands twice"),
        ({"features": ["who"], "categories": {}}, "no feature"),
        ({"categories": {"city": ["a", "b"]}}, "city"),
        ({"categories": {"town": ["a"]}}, "2 or more"),
        ({"classes": ["low"]}, "2 or more"),
        ({"classes": ["low", True]}, "quotes"),
        ({"label": "ill"}, "Extra"),
    ],
)
def test_what_a_source_cannot_say(changes: dict[str, Any], words: str) -> None:
    """No column of labels, least of all."""
    with pytest.raises(ValidationError, match=words):
        parameters(**changes)
