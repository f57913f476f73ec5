"""What a run says of its cells, and the headline that stands for all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from curvote.run.plan.step import Cell
from flows.cells import by_cell, scores_of, stage_keys, step
from flows.headline import of_outcomes, of_scores
from tests.tracked_run import EPSILONS, make_record, make_rows

ROW = {"protocol": "auto", "learner": None, "misclassification": 0.1, "se": 0.01}


def _headline(rows: list[dict[str, Any]]) -> Any:
    return of_scores(scores_of(make_record(), rows))


def test_cells_take_what_their_epsilon_shares() -> None:
    """The majority stands in every child, and alone only where there is no other."""
    scores = scores_of(make_record(), make_rows())
    assert set(by_cell(scores)) == {Cell("mrma", e, "centroid") for e in EPSILONS}
    alone = by_cell(score for score in scores if score.cell.learner is None)
    assert set(alone) == {Cell("mrma", e) for e in EPSILONS}


def test_stage_keys_are_those_the_cell_was_computed_from() -> None:
    """Shared stages and its own, none of another epsilon."""
    keys = stage_keys(make_record(), Cell("mrma", 2.0, "centroid"))
    own = {"privatize": "v2.0", "train": "t2.0", "aggregate": "a2.0"}
    assert keys == {"ingest": "i", "project": "p"} | own


def test_what_a_rule_takes_is_logged_under_its_protocol_too() -> None:
    """What `auto` took differs from epsilon to epsilon; its line in MLflow is one."""
    rows = [ROW | {"epsilon": 1.0, "method": "mean"}]
    rows.append(ROW | {"epsilon": 2.0, "method": "two"})
    for metrics in by_cell(scores_of(make_record(), rows)).values():
        assert metrics["misclassification.auto"] == 0.1
        assert metrics["misclassification_se.auto"] == 0.01
        assert len(metrics) == 4
    points = _headline(rows).points
    assert ("misclassification.auto", 0.1, 1000) in points
    assert ("misclassification.auto", 0.1, 2000) in points


def test_a_step_is_a_thousandth_of_epsilon() -> None:
    """MLflow's steps are whole numbers; without privacy there is no place."""
    assert [step(Cell("mrma", e)) for e in (0.125, 1.0, 10.0)] == [125, 1000, 10000]
    assert step(Cell("clean")) == 0


def test_the_headline_is_the_learner_that_is_stated_first() -> None:
    """Not the best one; the others stand beside it under their names."""
    rows = make_rows()
    second = [
        row | {"learner": "lda", "misclassification": 0.1}
        for row in rows
        if row["learner"]
    ]
    found = _headline([*rows, *second])
    assert found.title == "mrma 25.0 %"
    assert found.cell == Cell("mrma", 2.0, "centroid")
    assert ("misclassification.mrma", 0.25, 500) in found.points
    assert ("misclassification.mrma.lda", 0.1, 500) in found.points
    assert ("misclassification.majority", 0.25, 2000) in found.points
    assert ("epsilon", 0.5, 500) in found.points
    assert not any("weak" in name for name in found.names)


def test_of_arrivals_the_latest_is_told() -> None:
    """The earlier ones stand beside it."""
    rows = [
        row | {"arrival": arrival, "misclassification": (4 - arrival) / 10}
        for arrival in (0, 1, 2)
        for row in make_rows()
    ]
    found = _headline(rows)
    assert found.cell == Cell("mrma", 2.0, "centroid", None, 2)
    assert found.title == "mrma 20.0 %"
    assert ("misclassification.mrma.arrival-1", 0.3, 500) in found.points


def test_what_spends_nothing_holds_at_every_epsilon() -> None:
    """A classifier without noise has no place on the x-axis: it is a flat line."""
    clean = ROW | {"protocol": "clean", "epsilon": None, "learner": "centroid"}
    found = _headline([*make_rows(), clean | {"method": "clean"}])
    flat = [point for point in found.points if point[0] == "misclassification.clean"]
    assert [at for _, _, at in flat] == [500, 2000]


def test_a_release_is_told_by_what_it_estimates() -> None:
    """No true error is known; counts and estimates are."""
    cell = Cell("mrma", 4.0, "centroid")
    found = of_outcomes({cell: {"reports": 60.0, "utility": 0.7, "utility_se": 0.02}})
    assert found.title == "utility 0.7"
    assert ("reports", 60.0, 4000) in found.points
    assert ("epsilon", 4.0, 4000) in found.points
    assert of_outcomes({}).cell is None
    assert replace(found, points=()).names == []
