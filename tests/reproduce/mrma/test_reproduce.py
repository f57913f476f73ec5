"""`curvote reproduce`: which rows, with which numbers, in which order."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from curvote.base.errors import UserError
from curvote.papers.mrma.entries import (
    REPRODUCTIONS,
    comparison,
    count_agreeing,
    printed_cases,
    printed_cells,
    useful_group_rows,
)
from curvote.papers.reproduction import add_axes
from curvote.papers.rows import COLUMNS, to_json
from tests.reproduce_rows import row, summaries

NAMES = list(REPRODUCTIONS)
TABLES = {"table-1": 48, "table-2": 48, "table-a1": 38}


@pytest.mark.parametrize("name", NAMES)
def test_rows_keep_the_contract(name: str) -> None:
    """Every row has exactly the promised keys, a value, and no NaN."""
    rows = json.loads(to_json(comparison(name, summaries(name))))
    assert rows
    assert all(list(one) == list(COLUMNS) for one in rows)
    assert all(isinstance(one["curvote"], float) for one in rows)
    assert {one["quantity"] for one in rows} == {REPRODUCTIONS[name].quantity}


@pytest.mark.parametrize("name", NAMES)
def test_no_row_stands_twice(name: str) -> None:
    """What names a row names no other one."""
    rows = comparison(name, summaries(name))
    names = COLUMNS[: COLUMNS.index("published")]
    assert len({tuple(one[n] for n in names) for one in rows}) == len(rows)


@pytest.mark.parametrize(("name", "count"), TABLES.items())
def test_every_printed_cell_has_one_row(name: str, count: int) -> None:
    """Tables have a row for each printed value, and for nothing else."""
    extra = [row(name, m, 0.3, epsilon=1.0) for m in ("majority", "best_single")]
    rows = comparison(name, [*extra, *summaries(name)])
    file = REPRODUCTIONS[name].published
    assert file is not None
    assert [one["published"] for one in rows] == [
        c.percent for c in printed_cells(file)
    ]
    assert len(rows) == count


def test_curvote_is_the_published_form_and_corrected_the_right_one() -> None:
    """Made-up published forms lie 0.1 above the paper, right ones 5 below."""
    for one in comparison("table-2", summaries("table-2")):
        assert one["curvote"] - one["published"] == pytest.approx(0.1)
        assert one["corrected"] - one["published"] == pytest.approx(-5)
        assert one["se"] == pytest.approx(0.2)


def test_z_counts_both_errors() -> None:
    """Z divides by our se and the printed mean's, in percent points."""
    first = comparison("table-1", summaries("table-1"))[0]
    printed_se = 7.8 / math.sqrt(500)  # weak at epsilon 0.1: sd .078, 500 repetitions
    assert first["z"] == pytest.approx(0.1 / math.hypot(0.2, printed_se))


def test_without_a_printed_deviation_only_ours_counts() -> None:
    """Table A.1 prints no deviation."""
    rows = comparison("table-a1", summaries("table-a1"))
    assert all(one["z"] == pytest.approx(0.1 / 0.2) for one in rows)


def test_one_replicate_has_no_z() -> None:
    """Without a standard error there is nothing to divide by."""
    rows = comparison("table-1", [s | {"se": None} for s in summaries("table-1")])
    assert {one["z"] for one in rows} == {None}
    assert count_agreeing(REPRODUCTIONS["table-1"], rows) == (0, 0)


def test_agreement_counts_both_sides() -> None:
    """A cell is within the limit on either side, and only with a z."""
    base = {"learner": "logistic", "curvote": 9.0, "published": 5.0}
    rows = [base | {"z": z} for z in (-4.3, -3.5, -3.0, 0.0, 2.0, 3.1, None)]
    assert count_agreeing(REPRODUCTIONS["table-1"], rows) == (3, 6)
    assert count_agreeing(REPRODUCTIONS["table-a1"], rows) == (5, 6)


def test_points_that_are_granted_count_for_their_learner_only() -> None:
    """One point is within svm's 1.5, not within logistic's 0.6, nothing in table 1."""
    row = {"curvote": 11.0, "published": 10.0, "z": 9.0}
    learners = ("svm", "logistic", None)
    rows = [row | {"learner": learner} for learner in learners]
    assert count_agreeing(REPRODUCTIONS["table-a1"], rows) == (1, 3)
    assert count_agreeing(REPRODUCTIONS["table-1"], rows) == (0, 3)


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
    known = {"setting": {"z0": "0.5"}, "epsilon": 1.0}
    asked = row("figure-1", "report", 0.9, metric="agreement", **known)
    (agreed,) = comparison("figure-1", [asked])
    assert (agreed["curvote"], agreed["se"]) == pytest.approx((90, 0.2))
    assert (agreed["method"], agreed["setting"]) == ("agreement", "z0=0.5")
    known = {"setting": {"d": "5"}, "epsilon": 1.0}
    asked = row("figure-a6", "report", 0.4, metric="total_variation", **known)
    (apart,) = comparison("figure-a6", [asked])
    assert (apart["curvote"], apart["se"]) == pytest.approx((40, 0.2))
    assert (apart["method"], apart["d"]) == ("total_variation", 5)


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
    known = printed_cases()
    assert list(known) == list("12345678")
    assert all(int(c["N"]) == int(c["N0"]) + int(c["N1"]) for c in known.values())
