"""A clinic's table: classes by name, text categories, and marks for what is missing."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from curvote.base.errors import UserError
from curvote.data import lookup
from curvote.data.tables import curves, remote, table
from tests import long_file

GIVEN: dict[str, Any] = {
    "name": "table",
    "path": "clinic.csv",
    "label": "finding",
    "classes": ["none", "flu", "cold"],
    "features": ["age", "town", "smokes"],
    "bounds": {"age": [0, 100]},
    "categories": {"town": ["south", "north", "mid"], "smokes": ["yes", "no"]},
    "duplicates": "keep",
}
ROWS = """age,town,smokes,finding
41,north, yes ,flu
30,south,no,none
,mid,NA,flu
55,?,no,none
60,N/A,yes,flu
"""
NAMES = [
    *("age", "town = mid", "town = north", "town = south"),
    *("smokes = no", "smokes = yes"),
]


def parameters(**changes: Any) -> table.Parameters:
    """Return the parameters of the clinic's table, some of them changed."""
    return table.Parameters.model_validate(GIVEN | changes)


def write(folder: Path, text: str = ROWS, name: str = "clinic.csv") -> dict[str, Path]:
    """Write the table as the ending says."""
    path = folder / name
    path.write_text(text)
    if name.endswith(".parquet"):
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
        age = pd.to_numeric(frame["age"], errors="coerce")
        kinds = {"town": "category", "finding": "category"}
        frame.assign(age=age).astype(kinds).to_parquet(path, index=False)
    return {"path": path}


@pytest.mark.parametrize("name", ["clinic.csv", "clinic.parquet"])
def test_texts_become_numbers_and_labels_places(tmp_path: Path, name: str) -> None:
    """A column a category; what is missing gets the public centre, a third of each."""
    given, paths = parameters(), write(tmp_path, name=name)
    found, facts = table.clients(given, paths), table.facts(given, paths)
    assert [feature["name"] for feature in facts["features"]] == NAMES
    third = 1 / 3
    assert found["curve"].tolist() == [
        [41, 0, 1, 0, 0, 1],
        [30, 0, 0, 1, 1, 0],
        [50, 1, 0, 0, 0.5, 0.5],
        [55, third, third, third, 1, 0],
        [60, third, third, third, 0, 1],
    ]
    assert found["label"].tolist() == [1, 0, 1, 0, 1]
    assert facts["classes"] == GIVEN["classes"]
    spread = [
        f"{x} = {text}" for x, known in facts["categories"].items() for text in known
    ]
    assert spread == NAMES[1:]
    assert facts["counts"] == {"none": 2, "flu": 3, "cold": 0}  # nobody has a cold
    assert facts["missing"]["counts"]["town = mid"] == 2
    assert table.width(given) == found["curve"].shape[1] == len(facts["grid"])


def test_rows_that_lack_something_can_be_left_out(tmp_path: Path) -> None:
    """A missing text counts as a missing number does."""
    given = parameters(missing="drop")
    assert table.clients(given, write(tmp_path))["client_id"].tolist() == [1, 2]


def test_a_mark_that_is_listed_is_a_category(tmp_path: Path) -> None:
    """So that "not known" can be told from the others."""
    towns = [*GIVEN["categories"]["town"], "?", "N/A"]
    given = parameters(categories=GIVEN["categories"] | {"town": towns})
    found = table.clients(given, write(tmp_path))["curve"]
    assert found[:, 1:6].sum(axis=1).tolist() == [1] * 5
    assert table.width(given) == 1 + 5 + 2


def test_all_unknown_texts_are_reported_at_once(tmp_path: Path) -> None:
    """Categories and classes that nobody stated: counts, rows and texts."""
    text = ROWS.replace("41,north", "41,nord").replace("no,none", "no,healthy")
    with pytest.raises(UserError) as error:
        table.clients(parameters(), write(tmp_path, text))
    said = [each.message.partition(": ")[2] for each in error.value.problems]
    label = "finding is none of the classes none, flu, cold (2)"
    assert said == [
        f"{label}: line 3 'healthy', line 5 'healthy'.",
        "town is none of the categories mid, north, south (1): line 2 'nord'.",
    ]


def test_many_unknown_labels_are_never_taken_for_a_class(tmp_path: Path) -> None:
    """However many texts the column has, each of them is refused."""
    rows = "".join(f"4{i % 10},north,no,x{i}\n" for i in range(60))
    with pytest.raises(UserError, match=r"none of the classes .*\(60\).*and 50 more"):
        table.clients(parameters(), write(tmp_path, ROWS + rows))


def test_many_classes_are_places(tmp_path: Path) -> None:
    """As many as are listed, in the order of the list."""
    names = [f"c{i}" for i in range(40)]
    places = np.random.default_rng(1).permutation(40)
    rows = "".join(f"50,mid,no,c{place}\n" for place in places)
    text = ROWS.partition("\n")[0] + "\n" + rows
    found = table.clients(parameters(classes=names), write(tmp_path, text))
    assert found["label"].tolist() == places.tolist()


def test_a_list_of_two_is_the_short_form(tmp_path: Path) -> None:
    """Place 1 is the positive class; only the list is known without the file."""
    listed = parameters(classes=["none", "flu"])
    short = {**GIVEN, "positive": "flu"}
    del short["classes"]
    paths = write(tmp_path)
    other = table.Parameters.model_validate(short)
    assert table.facts(listed, paths) == table.facts(other, paths)
    assert lookup.classes(GIVEN | {"classes": ["none", "flu"]}) == ("none", "flu")
    assert lookup.classes(short) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": "all"}, "private records is not public"),
        ({"classes": ["one"]}, "two or more"),
        ({"classes": ["one", "one"]}, "each class once"),
        ({"positive": "flu"}, "give classes, or positive"),
        ({"categories": {"town": ["x", "y"]}}, "there are none for: smokes"),
        ({"categories": GIVEN["categories"] | {"sex": ["f", "m"]}}, "no feature: sex"),
        ({"categories": GIVEN["categories"] | {"town": ["x"]}}, "two or more"),
        ({"bounds": {"age": [0, 9], "town": [0, 1]}}, "has categories: town"),
    ],
)
def test_wrong_parameters_are_refused(changes: dict[str, Any], message: str) -> None:
    """Classes and categories are stated, each once; bounds are for numbers."""
    with pytest.raises(ValidationError, match=message):
        parameters(**changes)


def test_a_source_without_classes_is_refused() -> None:
    """The positive one of two, or all of them."""
    for module, said in ((table, GIVEN), (curves, long_file.GIVEN)):
        bare = {k: v for k, v in said.items() if k not in {"classes", "positive"}}
        with pytest.raises(ValidationError, match="name the classes"):
            module.Parameters.model_validate(bare)


def listed(**changes: Any) -> curves.Parameters:
    """Return the parameters of the long file with its classes by name."""
    said = {k: v for k, v in long_file.GIVEN.items() if k != "positive"}
    return curves.Parameters.model_validate(said | changes)


def test_curves_have_as_many_classes_as_are_listed(tmp_path: Path) -> None:
    """Labels are places; for two, those of the short form."""
    frame = long_file.frame()
    paths = {"path": long_file.write(frame, tmp_path)}
    short = curves.clients(long_file.PARAMETERS, paths)
    two = listed(classes=["well", "ill"])
    assert np.array_equal(curves.clients(two, paths)["label"], short["label"])
    assert curves.facts(two, paths) == curves.facts(long_file.PARAMETERS, paths)
    three = listed(classes=["ill", "unsure", "well"])
    found, facts = curves.clients(three, paths), curves.facts(three, paths)
    assert np.array_equal(found["label"], 2 - 2 * short["label"])
    assert facts["counts"] == dict(
        zip(three.classes or (), np.bincount(found["label"]).tolist(), strict=True)
    )
    assert lookup.classes(three.model_dump()) == three.classes


def test_a_curve_of_no_listed_class_is_refused(tmp_path: Path) -> None:
    """With the row at which its client begins."""
    paths = {"path": long_file.write(long_file.frame(), tmp_path)}
    unlisted = "group is none of the classes well, sick .*begins at row .*'ill'"
    with pytest.raises(UserError, match=unlisted):
        curves.clients(listed(classes=["well", "sick"]), paths)
    with pytest.raises(ValidationError, match="is not public"):
        listed(classes="all")


AWAY = {"name": "remote", "points": 5}


def test_remote_curves_have_listed_classes() -> None:
    """The short form is the list of two; `all` says nothing of records elsewhere."""
    three = remote.CURVES.Parameters.model_validate(AWAY | {"classes": ["a", "b", "c"]})
    assert remote.CURVES.facts(three)["classes"] == ["a", "b", "c"]
    two = remote.CURVES.Parameters.model_validate(
        AWAY | {"negative": "a", "positive": "b"}
    )
    assert (
        remote.CURVES.facts(two)["classes"]
        == list(remote.CURVES.classes(two))
        == ["a", "b"]
    )
    assert lookup.classes(AWAY | {"classes": ["a", "b", "c"]}) == ("a", "b", "c")
