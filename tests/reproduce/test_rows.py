"""What all wings share: a row of a score, numbers as text."""

from __future__ import annotations

import pytest

from curvote.reproduce.rows import COLUMNS, finished, number, scored, to_csv
from tests.reproduce_rows import row

SUMMARY = row("heart", "aligned", 0.2, epsilon=1.0, setting={"gamma": "1", "m": "4"})


def test_one_score_row_gives_a_row_for_each_quantity() -> None:
    """Accuracy is what misclassification leaves; F1 has an error of its own."""
    summary = SUMMARY | {"f1": 0.7, "f1_se": 0.01}
    found = {name: scored(summary, name) for name in ("accuracy", "f1")}
    assert found["accuracy"]["curvote"] == pytest.approx(80)
    assert found["accuracy"]["se"] == pytest.approx(0.2)
    assert found["f1"]["curvote"] == pytest.approx(70)
    assert found["f1"]["se"] == pytest.approx(1)
    for name, one in found.items():
        assert list(one) == list(COLUMNS)
        assert (one["quantity"], one["setting"]) == (name, "gamma=1 m=4")
        assert (one["pipeline"], one["method"]) == ("heart", "aligned")


def test_errors_are_what_a_score_row_holds_first() -> None:
    """A row without labels has no setting; one replicate has no error."""
    one = scored(SUMMARY | {"setting": {}, "se": None})
    assert (one["curvote"], one["se"]) == (pytest.approx(20), None)
    assert (one["quantity"], one["setting"]) == ("misclassification", None)


def test_small_values_keep_their_digits() -> None:
    """Shares have two decimals, values by formula four digits, and None no text."""
    by_formula = {"quantity": "value", "se": None, "curvote": 0.000123456}
    found = by_formula | {"se": 0.1, "curvote": 43.1}
    told = [
        number(one, "curvote")
        for one in (by_formula, found, by_formula | {"quantity": "accuracy"})
    ]
    assert told == ["0.0001235", "43.10", "0.00"]
    assert number(by_formula | {"published": None}, "published") == ""


def test_what_a_row_lacks_is_empty() -> None:
    """A wing says what it knows; the columns are always the same."""
    (one,) = finished([{"curvote": 1.5, "unheard": 3}])
    assert list(one) == list(COLUMNS)
    assert to_csv([one]).decode().splitlines()[1].count("1.5") == 1
