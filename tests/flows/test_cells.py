"""What a run says of its cells, and the headline that stands for all of them."""

import json
from typing import Any

import pytest

from curvote.chain.axis import Cell
from curvote.flows.tracking import log as mlflow_view
from curvote.flows.tracking.cells import (
    Headline,
    Row,
    axis_step,
    chosen_by_rule,
    load_scores,
    metrics_by_cell,
    outcomes_headline,
    parts_by_cell,
    stage_keys,
    study_headline,
)
from curvote.pipeline.config.settings import labelled_parts
from tests.tracked_run import CONFIG, EPSILONS, make_record, make_rows

SHARED = {name: CONFIG[name] for name in ("source", "clients", "project", "epsilon")}
ROW = {"learner": None, "metric": "misclassification", "value": 0.1, "se": 0.01}


def _headline(rows: list[Any], **config: Any) -> Headline:
    return study_headline(make_record(config=CONFIG | config), rows)


def _cell(epsilon: float, **more: Any) -> Cell:
    return Cell.from_mapping({"protocol": "mrma", "epsilon": epsilon, **more})


def test_cells_take_what_their_epsilon_shares() -> None:
    """The majority stands in every child, and alone only where there is no other."""
    scores = load_scores(make_record(), make_rows())
    cells = {_cell(epsilon, learner="centroid") for epsilon in EPSILONS}
    assert set(metrics_by_cell(scores)) == cells
    alone = metrics_by_cell(score for score in scores if score.method == "majority")
    assert set(alone) == {_cell(epsilon) for epsilon in EPSILONS}


def test_stage_keys_are_those_the_cell_was_computed_from() -> None:
    """Shared stages and its own, none of another epsilon."""
    keys = stage_keys(make_record(), _cell(2.0, learner="centroid"))
    own = {"privatize": "v2.0", "train": "t2.0", "aggregate": "a2.0"}
    assert keys == {"ingest": "i", "project": "p"} | own


def test_what_a_rule_takes_is_logged_under_its_protocol_too() -> None:
    """What `auto` took differs from epsilon to epsilon; its line in MLflow is one."""
    record = make_record(config={**SHARED, "protocol": "auto", "epsilon": [0.5, 20.0]})
    rows: list[Row] = []
    for setting, part in labelled_parts(record.config):
        if setting:  # the volunteers, who stand beside it unasked
            continue
        context = dict(part.pairs) | {"protocol": "auto", "method": part.method}
        rows.append(ROW | context)
        assert chosen_by_rule(part) == {"chosen": part.method, "why": part.reason}
    scores = load_scores(record, rows)
    for metrics in metrics_by_cell(scores).values():
        assert metrics["misclassification.auto"] == 0.1
        assert metrics["misclassification_se.auto"] == 0.01
        assert len(metrics) == 4
    points = study_headline(record, rows).points
    assert ("misclassification.auto", 0.1, 500) in points
    assert ("misclassification.auto", 0.1, 20000) in points


@pytest.mark.parametrize(
    ("value", "place"), [(0.125, 125), (1.0, 1000), (7, 7), (None, 0), ("word", 0)]
)
def test_a_step_is_a_whole_number(value: Any, place: int) -> None:
    """A thousandth of a fraction, a count as it is; else there is no place."""
    assert axis_step(Cell.from_mapping({"epsilon": value}), "epsilon") == place


def test_the_headline_is_the_learner_that_is_stated_first() -> None:
    """Not the best one; the others stand beside it under their names."""
    rows = make_rows()
    second = [row | {"learner": "lda", "value": 0.1} for row in rows if row["learner"]]
    found = _headline([*rows, *second])
    assert found.title == "mrma 25.0 % (epsilon 0.5, centroid)"
    assert found.cell == _cell(0.5, learner="centroid")
    assert ("misclassification.mrma", 0.25, 500) in found.points
    assert ("misclassification.mrma.lda", 0.1, 500) in found.points
    assert ("misclassification.majority", 0.25, 2000) in found.points
    assert ("epsilon", 0.5, 500) in found.points
    assert found.metric_names[:2] == ["main", "misclassification.mrma"]
    assert not any("weak" in name or name == "epsilon" for name in found.metric_names)


def test_of_arrivals_the_latest_is_told() -> None:
    """The earlier ones stand beside it."""
    rows = [
        row
        | {"protocol": "online", "method": "online"}
        | {"arrival": n, "value": n / 9}
        for n in (0, 1, 2)
        for row in make_rows()
        if row["method"] == "mrma"
    ]
    found = _headline(rows, protocol="online", online={"arrivals": 3, "memory": 1.0})
    assert found.cell["arrival"] == 2
    assert found.title == "online 22.2 % (epsilon 0.5, centroid)"
    assert ("misclassification.online.arrival-1", 1 / 9, 500) in found.points


def test_what_spends_nothing_holds_at_every_epsilon() -> None:
    """A classifier without noise has no place on the x-axis: it is a flat line."""
    rows = [row | {"setting": {"protocol": "mrma"}} for row in make_rows()]
    free = {"protocol": "clean", "epsilon": None, "learner": "lda", "method": "clean"}
    rows.append(ROW | free | {"setting": {"protocol": "clean"}})
    found = _headline(rows, protocols=["mrma", "clean"])
    flat = [point for point in found.points if point[0] == "misclassification.clean"]
    assert [place for _, _, place in flat] == [500, 2000]
    assert found.metric_names[:2] == ["main", "misclassification.mrma"]


def test_groups_stand_for_a_cell_that_is_not_known_as_a_whole() -> None:
    """Each has a line of its own; the first is the headline."""
    rows = [row | {"group": g} for row in make_rows() for g in ("near", "far")]
    found = _headline(rows)
    assert found.metric_names[:2] == ["main", "misclassification.mrma.group-near"]
    assert ("misclassification.mrma.group-far", 0.25, 500) in found.points
    whole = [*rows, *(row | {"value": 0.1} for row in make_rows())]
    assert _headline(whole).title == "mrma 10.0 % (epsilon 0.5, centroid)"
    assert not any("group" in name for name in _headline(whole).metric_names)


def test_a_release_is_told_by_what_it_estimates() -> None:
    """No true error is known; counts and estimates are."""
    cell = _cell(2.0, learner="centroid")
    known = {"reports": 60.0, "utility": 0.7, "utility_se": 0.02}
    found = outcomes_headline({cell: known}, parts_by_cell(make_record(), [cell]))
    assert found.title == "utility 0.7"
    assert ("reports", 60.0, 2000) in found.points
    assert ("epsilon", 2.0, 2000) in found.points
    assert not outcomes_headline({}, {}).points


@pytest.mark.parametrize("length", [3, 40, 200])
def test_a_view_of_many_methods_fits_the_tag_that_holds_it(length: int) -> None:
    """The first names stand in it; MLflow refuses a longer one and what follows."""
    names = [f"{number:04}".ljust(length, "x") for number in range(1000)]
    points = tuple((name, 1.0, 0) for name in names)
    state = mlflow_view._view_state(Headline(points=points))
    kept = state["selectedColumns"][:-4]
    assert kept == [f"metrics.`{name}`" for name in names[: len(kept)]]
    assert 10 < len(kept) < 1000
    assert len(json.dumps({"state": json.dumps(state)})) < 20_000
