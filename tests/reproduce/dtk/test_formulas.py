"""Table 1 and figures 1 and 2 of DTK: rows that take no run, and their drawings."""

from itertools import pairwise

import numpy as np
import pytest

from curvote.data.simulation.records import regression
from curvote.papers.dtk.formulas import (
    ALPHA,
    FIGURE,
    GAMMAS,
    TABLE,
    TARGET,
    setting_name,
)
from curvote.papers.rows import select
from tests.reproduce_rows import check_rows, comparison, entries_of, svg

REPRODUCTIONS = entries_of("dtk")
FORMULAS = [name for name, entry in REPRODUCTIONS.items() if entry.quantity == "value"]
SHOWN = {
    "table-1-dtk": ("printed", "corrected", "by (4)", "Ps: sources, privacy costs"),
    "figure-1-dtk": ("log excess risk", "gamma", "1: nothing is learnt"),
    "figure-2-dtk": ("eta_T", "eta_S gamma=0.5", "probability of class 1"),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_rows_keep_the_contract(name: str) -> None:
    """And figures name what they show, as text."""
    rows = comparison(name)
    check_rows(name, rows)
    assert {one["quantity"] for one in rows} == {"value"}
    figure = svg(name, rows)
    assert [text for text in SHOWN[name] if f">{text}</text>" not in figure] == []
    assert "mathdefault" not in figure
    assert "<dc:date" not in figure


def test_every_end_is_where_the_rates_change_hands() -> None:
    """By the corrected table; the printed one has other or no values of eps(21)."""
    found = comparison("table-1-dtk")
    assert {one["setting"] for one in found} == set(map(setting_name, TABLE))
    for one in found:
        assert one["corrected"] == pytest.approx(one["curvote"], rel=1e-9)
        if one["method"] != "eps_21":
            assert one["published"] == pytest.approx(one["curvote"], rel=1e-9)
        elif "gamma=0.8" in one["setting"]:
            assert one["published"] is None
        else:
            assert one["published"] != pytest.approx(one["curvote"], rel=0.1)
    assert {"gamma_star", "eps_1", "eps_2", "eps_3", "eps_11", "eps_21"} == {
        one["method"] for one in found
    }


def test_the_table_knows_the_numbers_of_the_papers_readme() -> None:
    """eps(21) = 1.432 with n0 20,000 and gamma 1.2; the end that print lacks."""
    found = select(comparison("table-1-dtk"), method="eps_21")
    (one,) = (row for row in found if "n0=20000" in row["setting"] and row["published"])
    assert one["curvote"] == pytest.approx(1.432, abs=5e-4)
    (lacks,) = (row for row in found if "gamma=0.85" in row["setting"])
    assert lacks["group"] == "NPt to Ps"
    assert lacks["published"] is None


def test_risk_falls_and_its_steps_follow_what_decides() -> None:
    """0 where nothing is learnt, level where privacy is free, else falling."""
    found = comparison("figure-1-dtk")
    for setting in FIGURE:
        mine = select(found, setting=setting_name(setting))
        assert len({one["method"] for one in mine}) >= 3
        for one, after in pairwise(mine):
            assert after["curvote"] <= one["curvote"]
            if one["method"] == after["method"] and one["method"] in {"Pt", "Ps"}:
                step = np.log(after["epsilon"] / one["epsilon"])
                source = setting["gamma"] if one["method"] == "Ps" else 1
                beta = setting["beta"]
                slope = -beta * (1 + ALPHA) / (beta * source + setting["d"])
                fall = after["curvote"] - one["curvote"]
                assert fall == pytest.approx(slope * step, rel=1e-4)
        assert select(mine, method="1")[0]["curvote"] == 0


def test_the_best_rule_of_the_simulation_is_right_in_92_of_100() -> None:
    """At the target; sources agree on the rule, clearer for gamma below 1."""
    x = np.random.default_rng(1).random((2, 200_000)).T
    own = regression(x, 1.0)
    assert np.mean(np.maximum(own, 1 - own)) == pytest.approx(0.92, abs=0.005)
    for gamma in GAMMAS:
        other = regression(x, gamma)
        assert np.array_equal(own > 0.5, other > 0.5)
        away = np.abs(other - 0.5) - np.abs(own - 0.5)
        assert np.all(away * (1 - gamma) >= -1e-12)


def test_the_terminal_shows_few_rows() -> None:
    """Powers of ten, and some points in which both coordinates are alike."""
    for name, most in (("figure-1-dtk", 30), ("figure-2-dtk", 15)):
        rows = comparison(name)
        lines, columns = REPRODUCTIONS[name].laid_out(rows)
        assert 0 < len(lines) <= most
        assert ("curvote" in columns) == (name == "figure-2-dtk")
    points = [one["setting"].replace("x2", "x1").split() for one in lines]
    assert all(first == second for first, second in points)


def test_rows_of_the_functions_are_their_values() -> None:
    """One row names one point of one function."""
    one = comparison("figure-2-dtk")[100]
    place = dict(part.split("=") for part in one["setting"].split())
    assert one["method"] == TARGET
    (value,) = regression(np.array([[float(place["x1"]), float(place["x2"])]]), 1.0)
    assert one["curvote"] == pytest.approx(value, abs=1e-3)
