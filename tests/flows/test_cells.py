"""What a cell of the grid is logged with: its scores, stage keys and parameters."""

from __future__ import annotations

from curvote.chain.axis import Cell
from flows.cells import by_cell, scalars, stage_keys
from tests.tracked_run import CONFIG, EPSILONS, make_record, make_rows


def test_cells_take_what_their_epsilon_shares() -> None:
    """The majority stands in every child, and alone only where there is no other."""
    cells = by_cell(make_rows())
    assert set(cells) == {Cell("mrma", e, "centroid") for e in EPSILONS}
    alone = by_cell(row for row in make_rows() if row["learner"] is None)
    assert set(alone) == {Cell("mrma", e) for e in EPSILONS}


def test_stage_keys_are_those_the_cell_was_computed_from() -> None:
    """Shared stages and its own, none of another epsilon."""
    keys = stage_keys(make_record(), Cell("mrma", 2.0, "centroid"))
    own = {"privatize": "v2.0", "train": "t2.0", "aggregate": "a2.0"}
    assert keys == {"ingest": "i", "project": "p"} | own


def test_params_are_short_scalars_with_one_meaning() -> None:
    """Lists and nothings are left out; an ambiguous name keeps its path."""
    params = scalars(CONFIG)
    assert params["mechanism"] == "laplace"
    assert params["train.size"] == "50"
    assert params["project.size"] == "4"
    assert params["source.name"] == "simulated"
    assert not {"epsilon", "schedule", "size"} & set(params)


def test_an_arm_is_logged_under_its_protocol_too() -> None:
    """What `auto` took differs from epsilon to epsilon; its line in MLflow is one."""
    row = {"protocol": "auto", "learner": None, "misclassification": 0.1, "se": 0.01}
    rows = [row | {"epsilon": 1.0, "method": "mean"}]
    rows.append(row | {"epsilon": 2.0, "method": "two"})
    for metrics in by_cell(rows).values():
        assert metrics["misclassification.auto"] == 0.1
        assert metrics["misclassification_se.auto"] == 0.01
        assert len(metrics) == 4
