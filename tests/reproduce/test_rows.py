"""What all wings share: a row of a score, numbers as text."""

import pytest

from curvote.chain.axis import Axis
from curvote.chain.measure import Look
from curvote.papers.figure import Chart, Series
from curvote.papers.rows import (
    COLUMNS,
    Row,
    complete_rows,
    format_number,
    laid_out,
    score_row,
    to_csv,
)
from tests.reproduce_rows import row

SUMMARY = row("heart", "aligned", 0.2, epsilon=1.0, setting={"gamma": "1", "m": "4"})


MEASURED = row("mnist", "labels", 0.9, metric="accuracy", se=0.01, n_classes=10)


@pytest.mark.parametrize(
    ("summary", "quantity", "value", "error", "setting"),
    [
        # Accuracy is what misclassification leaves; F1 has an error of its own.
        (SUMMARY, "accuracy", 80, 0.2, "gamma=1 m=4"),
        (SUMMARY | {"f1": 0.7, "f1_se": 0.01}, "f1", 70, 1, "gamma=1 m=4"),
        # A system of several classes measures accuracy itself, with its own error.
        (MEASURED, "accuracy", 90, 1, None),
        # A row without labels has no setting; one replicate has no error.
        (SUMMARY | {"setting": {}, "se": None}, "misclassification", 20, None, None),
    ],
)
def test_one_score_row_gives_a_row_for_each_quantity(
    summary: Row, quantity: str, value: float, error: float | None, setting: str | None
) -> None:
    """In percent, with the standard error of the quantity, if it is known."""
    one = score_row(summary, quantity)
    assert list(one) == list(COLUMNS)
    assert (one["curvote"], one["se"]) == (pytest.approx(value), pytest.approx(error))
    assert (one["quantity"], one["setting"]) == (quantity, setting)
    for name in ("pipeline", "method", "n_classes"):
        assert one[name] == summary.get(name)


def by_classes(*numbers: int) -> list[dict[str, object]]:
    """Two encoders at each number of classes, epsilon 1."""
    return complete_rows(
        {"protocol": name, "n_classes": k, "epsilon": 1.0, "curvote": 50.0 + k}
        for k in numbers
        for name in ("vector", "rr")
    )


def test_numbers_of_classes_may_stand_across() -> None:
    """A column for each, a line a protocol; else they tell rows apart at the left."""
    lines, columns = laid_out(by_classes(16, 2), "n_classes")
    assert columns == ["protocol", "2 classes", "16 classes"]
    assert [line["protocol"] for line in lines] == ["vector", "rr"]
    assert lines[0]["16 classes"] == "66.00"
    lines, columns = laid_out(by_classes(2, 16))
    assert columns == ["protocol", "n_classes", "epsilon 1"]
    assert len(lines) == 4


def test_lines_go_along_any_axis() -> None:
    """A figure says what goes to the right, with a mark at each value."""
    axis = Axis("n_classes", lambda _: [2, 16], label="classes")
    series = [Series(["protocol"], dict.fromkeys(("rr", "vector"), Look("k", "o")))]
    (ax,) = Chart(["epsilon"], series, x=axis)(by_classes(2, 16)).axes
    assert ax.get_xlabel() == "classes"
    assert [text.get_text() for text in ax.get_xticklabels()] == ["2", "16"]


def test_small_values_keep_their_digits() -> None:
    """Shares have two decimals, values by formula four digits, and None no text."""
    by_formula = {"quantity": "value", "se": None, "curvote": 0.000123456}
    found = by_formula | {"se": 0.1, "curvote": 43.1}
    told = [
        format_number(one, "curvote")
        for one in (by_formula, found, by_formula | {"quantity": "accuracy"})
    ]
    assert told == ["0.0001235", "43.10", "0.00"]
    assert format_number(by_formula | {"published": None}, "published") == ""


def test_what_a_row_lacks_is_empty() -> None:
    """A wing says what it knows; the columns are always the same."""
    (one,) = complete_rows([{"curvote": 1.5, "unheard": 3}])
    assert list(one) == list(COLUMNS)
    assert to_csv([one]).decode().splitlines()[1].count("1.5") == 1
