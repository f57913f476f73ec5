"""`curvote reproduce`: which rows, with which numbers, in which order."""

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from curvote.base.errors import UserError
from curvote.papers.mrma.figures import useful_group_rows
from curvote.papers.reproduction import add_axes
from curvote.papers.rows import COLUMNS, Row, published_rows
from tests.reproduce_rows import (
    WITHOUT_SUMMARIES,
    check_rows,
    comparison,
    entries_of,
    row,
    summaries,
)

REPRODUCTIONS = entries_of("mrma")
NAMES = sorted(set(REPRODUCTIONS) - WITHOUT_SUMMARIES)
TABLES = {"table-1": 48, "table-2": 48, "table-a1": 38}


@pytest.mark.parametrize("name", NAMES)
def test_rows_keep_the_contract(name: str) -> None:
    """Every row has the promised keys, a value and a name of its own, and no NaN."""
    rows = comparison(name, summaries(name))
    check_rows(name, rows)
    assert {one["quantity"] for one in rows} == {REPRODUCTIONS[name].quantity}


@pytest.mark.parametrize(("name", "count"), TABLES.items())
def test_every_printed_cell_has_one_row(name: str, count: int) -> None:
    """Tables have a row for each printed value, and for nothing else."""
    extra = [row(name, m, 0.3, epsilon=1.0) for m in ("majority", "best_single")]
    rows = comparison(name, [*extra, *summaries(name)])
    cells = published_rows("mrma", REPRODUCTIONS[name].options["published"])
    assert [one["published"] for one in rows] == [
        cell["misclassification_pct"] for cell in cells
    ]
    assert len(rows) == count


def test_curvote_is_the_published_form_and_corrected_the_right_one() -> None:
    """Made-up published forms lie 0.1 above the paper, right ones 5 below."""
    for one in comparison("table-2", summaries("table-2")):
        assert one["curvote"] - one["published"] == pytest.approx(0.1)
        assert one["corrected"] - one["published"] == pytest.approx(-5)
        assert one["se"] == pytest.approx(0.2)


def test_z_counts_both_errors() -> None:
    """Z divides by our se and the printed mean's, if any, in percent points.

    Table A.1 prints no deviation; one replicate has no standard error, and no z.
    """
    first = comparison("table-1", summaries("table-1"))[0]
    printed_se = 7.8 / math.sqrt(500)  # weak at epsilon 0.1: sd .078, 500 repetitions
    assert first["z"] == pytest.approx(0.1 / math.hypot(0.2, printed_se))
    rows = comparison("table-a1", summaries("table-a1"))
    assert all(one["z"] == pytest.approx(0.1 / 0.2) for one in rows)
    rows = comparison("table-1", [s | {"se": None} for s in summaries("table-1")])
    assert {one["z"] for one in rows} == {None}
    assert list(REPRODUCTIONS["table-1"].conclusions(rows)) == []


def agreeing(name: str, rows: list[Row]) -> str:
    """How many cells of how many are said to agree."""
    _, counts, _ = REPRODUCTIONS[name].conclusions(rows)
    return counts.partition(" cells")[0]


def test_agreement_counts_both_sides() -> None:
    """A cell is within the limit on either side, and only with a z.

    Points that are granted count for their learner only: one is within svm's 1.5, not
    within logistic's 0.6, nothing in table 1.
    """
    base = dict.fromkeys(COLUMNS) | {"curvote": 9.0, "published": 5.0}
    rows = [base | {"z": z} for z in (-4.3, -3.5, -3.0, 0.0, 2.0, 3.1, None)]
    assert agreeing("table-1", rows) == "3 of 6"
    assert agreeing("table-a1", rows) == "5 of 6"
    base |= {"curvote": 11.0, "published": 10.0, "z": 9.0}
    rows = [base | {"learner": learner} for learner in ("svm", "logistic", None)]
    assert agreeing("table-a1", rows) == "1 of 3"
    assert agreeing("table-1", rows) == "0 of 3"


def test_whole_curves_have_one_form() -> None:
    """The two `initial` rows have no size, and nothing beside them to correct."""
    given = summaries("table-a1")
    for one in given:
        if one["pipeline"] == "table-a1-initial":
            one["setting"].pop("form")
    rows = comparison("table-a1", given)
    whole = [one for one in rows if one["representation"] == "initial"]
    assert [(one["learner"], one["d"], one["corrected"]) for one in whole] == [
        ("dwd", None, None),
        ("cg", None, None),
    ]


def test_absent_cell_is_named() -> None:
    """A pipeline that lost a printed cell is told which one."""
    there = [s for s in summaries("table-1") if s["method"] != "voting"]
    with pytest.raises(UserError, match=r"epsilon 0\.1, method voting.*table-1"):
        comparison("table-1", there)


def test_figures_have_nothing_printed() -> None:
    """A figure's rows follow the right definitions; nothing stands beside them."""
    rows = comparison("figure-2", summaries("figure-2"))
    for name in ("published", "corrected", "z"):
        assert {one[name] for one in rows} == {None}


def test_servers_end_with_their_final_classifier_useful_groups_first() -> None:
    """Useful rows come first; alone, a server's final classifier is its own mrma."""
    rows = comparison("figure-3", summaries("figure-3"))
    groups = list(dict.fromkeys(one["group"] for one in rows))
    assert groups == ["useful", "1", "2", "3"]
    final = {(one["split"], one["method"]) for one in rows}
    assert final == {
        ("clients", "federated"),
        ("budget", "federated"),
        ("single", "mrma"),
    }


def test_theory_is_told_in_its_own_quantity() -> None:
    """Rows are named after what was measured of the reports, not after a method."""
    for name, metric, value, axis, column in (
        ("figure-1", "agreement", 0.9, {"z0": "0.5"}, {"setting": "z0=0.5"}),
        ("figure-a6", "total_variation", 0.4, {"d": "5"}, {"d": 5}),
    ):
        asked = row(name, "report", value, metric=metric, setting=axis, epsilon=1.0)
        (one,) = comparison(name, [asked])
        assert (one["curvote"], one["se"]) == pytest.approx((100 * value, 0.2))
        assert one.items() >= {"method": metric, **column}.items()


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(TABLES)))
def test_lines_are_kept_together(name: str) -> None:
    """Along each line of a figure epsilon rises, no privacy last."""
    rows = comparison(name, summaries(name))
    for before, after in pairwise(rows):
        same = all(before[n] == after[n] for n in COLUMNS[:10] if n != "epsilon")
        if same and after["epsilon"] is not None:
            assert before["epsilon"] < after["epsilon"]


def test_useful_error_knows_that_groups_go_together() -> None:
    """What group 1 wins and group 3 loses in the same replicate is no error at all."""
    swing = np.tile([0.05, -0.05], 10)
    table = pd.concat(
        [_scores("1", 0.2 + swing), _scores("3", 0.3 - swing), _scores("2", 0.5)]
    )
    (found,) = useful_group_rows(
        "figure-3", table, {"split=clients": {"split": "clients"}}
    )
    assert found["metric"] == "misclassification"
    assert found["value"] == pytest.approx(0.25)
    assert found["se"] == pytest.approx(0, abs=1e-12)
    assert (found["group"], found["setting"]) == ("useful", {"split": "clients"})


def _scores(group: str, values: np.ndarray | float) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "replicate": range(20),
            "protocol": "mrma",
            "setting": "split=clients",
            "epsilon": 1.0,
            "learner": "cg",
            "method": "federated",
            "group": group,
            "metric": "misclassification",
            "value": values,
        }
    )


def test_each_score_knows_its_axes() -> None:
    """A setting's labels become columns; a setting without an axis has none there."""
    labels = {"d=4 form=x": {"d": "4", "form": "x"}, None: {}}
    table = pd.DataFrame({"setting": ["d=4 form=x", None]})
    found = add_axes(table, labels)
    assert found["d"].tolist()[0] == "4"
    assert found["form"].isna().tolist() == [False, True]


def test_every_case_has_its_sizes() -> None:
    """Cases 1 to 8 are known, and their clients add up."""
    known = published_rows("mrma", "mrma_cases_A2_A3.csv")
    assert [one["case"] for one in known] == list("12345678")
    assert all(int(c["N"]) == int(c["N0"]) + int(c["N1"]) for c in known)
