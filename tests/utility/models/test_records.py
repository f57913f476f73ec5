"""Options and records: numbers without gaps, bounds the right way, labels known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.systems.utility import request
from curvote.systems.utility.method.models import records


def test_bounds_and_places_are_read() -> None:
    """In the order of the sensitive features."""
    assert request.sensitive_columns(["bmi", "age"], ["age", "sex", "bmi"]) == (2, 0)
    found = request.parse_bounds(["age=0:100", "bmi=-1.5:1e2"], ["bmi", "age"])
    np.testing.assert_array_equal(found, [[-1.5, 100], [0, 100]])
    assert request.check_epsilons([4, 1, 4]) == (1.0, 4.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "no bounds of age, bmi"),
        (["age=0:100"], r"no bounds of bmi: .*--bounds bmi=LOW:HIGH"),
        (["age=100:0", "bmi=1:2"], "the other way round: age=0:100"),
        (["age=5:5", "bmi=1:2"], "must be below the second"),
        (["age=0:inf", "bmi=1:2"], "finite"),
        (["age=nan:1", "bmi=1:2"], "finite"),
        (["age", "bmi=1:2"], "write NAME=LOW:HIGH"),
        (["age=a:b", "bmi=1:2"], "write NAME=LOW:HIGH"),
        (["agee=0:1", "bmi=1:2"], "Did you mean 'age'"),
        (["age=0:1", "age=0:2", "bmi=1:2"], "of age twice"),
    ],
)
def test_bounds_that_are_none_are_said(given: list[str], said: str) -> None:
    """One message each."""
    with pytest.raises(UserError, match=said):
        request.parse_bounds(given, ["age", "bmi"])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "no feature is sensitive"),
        (["agee"], "Did you mean"),
        (["a", "a"], "twice"),
    ],
)
def test_features_that_are_none_are_said(names: list[str], said: str) -> None:
    """One message each."""
    with pytest.raises(UserError, match=said):
        request.sensitive_columns(names, ["age", "a"])


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, 1e-9])
def test_an_epsilon_that_is_none_is_said(value: float) -> None:
    """Zero, negative, no number, without end, too small."""
    with pytest.raises(UserError, match="epsilon is"):
        request.check_epsilons([1, value])


def test_records_are_numbers() -> None:
    """As text, as numbers, in the order asked for."""
    table = {"b": ["1", " 2.5"], "a": [3, 4.0], "c": ["x", "y"]}
    found = records.model_matrix(table, ["a", "b"], "file")
    np.testing.assert_array_equal(found, [[3, 1], [4, 2.5]])


def test_a_text_is_its_place_among_those_that_are_known() -> None:
    """One that is not known is refused, and the nearest is named."""
    table, texts = {"job": ["private", " govt"]}, {"job": ("govt", "private")}
    np.testing.assert_array_equal(
        records.model_matrix(table, ["job"], "file", texts), [[1], [0]]
    )
    with pytest.raises(UserError, match=r"such as 'privat'\. Did you mean 'private'"):
        records.model_matrix({"job": ["privat"]}, ["job"], "file", texts)


def test_every_problem_of_a_table_is_said_at_once() -> None:
    """Gaps and text apart, with counts and the column."""
    table = {"age": ["1", "", "NA", None], "job": ["a", "b", "c", "1"], "x": [1] * 4}
    with pytest.raises(UserError) as said:
        records.model_matrix(table, ["age", "job", "xx"], "people.csv")
    messages = [problem.message for problem in said.value.problems]
    assert len(messages) == 3
    assert "no column 'xx'. Did you mean 'x'" in messages[0]
    assert "people.csv: age has 3 gaps in 4 records" in messages[1]
    assert "job holds 3 values that are no finite numbers, such as 'a'" in messages[2]
    with pytest.raises(UserError, match="no record"):
        records.model_matrix({"age": []}, ["age"], "people.csv")


def test_what_lies_beyond_is_moved_and_counted() -> None:
    """Only the sensitive columns; what lies inside is left alone."""
    given = np.array([[-5.0, 7.0], [50.0, 7.0], [101.0, 7.0]])
    found, notes = records.clip_records(
        given, [0], np.array([[0.0, 100.0]]), ["age", "b"]
    )
    np.testing.assert_array_equal(found, [[0, 7], [50, 7], [100, 7]])
    assert notes == ("age: 2 of 3 records lie beyond 0:100 and were moved to the edge",)
    assert (
        records.clip_records(found, [0], np.array([[0.0, 100.0]]), ["age", "b"])[1]
        == ()
    )


def test_labels_are_places_of_classes() -> None:
    """However a file writes a number; or by the value that is the second class."""
    same = records.label_codes(["1", 1.0, "0"], "ill", [0, 1], None)
    assert same.tolist() == [1, 1, 0]
    said = records.label_codes(["Yes", "No", "No"], "ill", [0, 1], "Yes")
    assert said.tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("cells", "classes", "positive", "said"),
    [
        (["0", ""], [0, 1], None, "1 gaps in 2 records"),
        (["Yes", "No"], [0, 1], None, "none of the classes: 0, 1"),
        (["Yes", "No"], [0, 1], "yes", "--positive yes is none of ill"),
        (["0", "1"], [0, 1, 2], "1", "--positive is for two classes"),
    ],
)
def test_labels_that_are_none_are_said(
    cells: list[str], classes: list[int], positive: str | None, said: str
) -> None:
    """One message each."""
    with pytest.raises(UserError, match=said):
        records.label_codes(cells, "ill", classes, positive)


def test_groups_are_few() -> None:
    """A column of numbers without end is no group; a gap is none."""
    assert records.group_names(["f", "m"], "sex").tolist() == ["f", "m"]
    with pytest.raises(UserError, match="30 different values"):
        records.group_names(list(range(30)), "age")
    with pytest.raises(UserError, match="gaps"):
        records.group_names(["f", None], "sex")
