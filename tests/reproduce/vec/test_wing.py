"""VEC's figures and tables, and what goes beyond: rows of made-up runs, drawings."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.data.simulation.records import CIRCLE, CircleParameters
from curvote.papers.reproduction import Evidence
from curvote.papers.rows import Row, published_rows, select
from curvote.papers.vec import figures
from tests.reproduce_rows import check_rows, entries_of, evidence, svg

REPRODUCTIONS = entries_of("vec")
PRINTED = published_rows("vec", "label_ldp_images.csv")
ENCODERS = ("rr", "lp_2st", "alibi", "vector", "oue", "hadamard", "subset", "auto")
VALUES = {"labels": 0.8, "majority": 0.1, "bayes": 0.9, "clean": 0.85}
FIGURES = ("figure-2-vec", "figure-3-vec", "figure-4-vec")
CONFIG = {
    "seed": 5,
    "protocol": "labels",
    "source": {"name": "circle"},
    "clients": {"train": 400, "test": 100},
    "epsilon": [1.0],
    "learners": [{"name": "knn", "label": "knn-200", "params": {"k": 50}}],
    "grid": {
        "sigma": {"2/K": {"source.sigma": "2/K"}, "0.05": {"source.sigma": 0.05}},
        "n_classes": {"2": {"source.n_classes": 2}, "16": {"source.n_classes": 16}},
    },
    "protocols": [
        *({"name": "labels", "label": name} for name in ENCODERS),
        {"name": "labels_clean", "label": "clean"},
    ],
}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold the bounds to few points: each takes its own radius."""
    monkeypatch.setattr(figures, "POINTS", 50)


def summaries(
    pipeline: str,
    labels: tuple[str, ...] = ENCODERS,
    levels: tuple[float, ...] = (1.0,),
    learner: str = "knn-200",
    **axes: tuple[str, ...],
) -> Iterator[Row]:
    """What a run of these protocols might have found: each brings its baselines."""
    for point in product(*axes.values()):
        setting = dict(zip(axes, point, strict=True))
        for label, epsilon in product(labels, levels):
            for method in ("labels", "majority", "bayes"):
                yield row(pipeline, label, method, epsilon, learner, setting)
        yield row(pipeline, "clean", "clean", None, learner, setting)


def row(
    pipeline: str,
    label: str,
    method: str,
    epsilon: float | None,
    learner: str,
    setting: dict[str, str],
) -> Row:
    """One made-up score row; vectors are a little worse than the others."""
    value = VALUES[method] - 0.01 * (label == "vector")
    return {
        "pipeline": pipeline,
        "protocol": label,
        "method": method,
        "metric": "accuracy",
        "epsilon": epsilon,
        "learner": learner,
        "setting": {"protocol": label} | setting,
        "accuracy": value,
        "se": 0.002,
        "balanced": value - 0.1,
        "balanced_se": 0.003,
    }


def figure(name: str = "figure-2-vec") -> Evidence:
    """What a figure might have found."""
    grid = {axis: tuple(values) for axis, values in CONFIG["grid"].items()}
    return evidence(name, summaries(name, **grid), configs=[CONFIG])


def table(name: str) -> Evidence:
    """What the pipelines of a table might have found: every printed cell."""
    levels = sorted({line["epsilon"] for line in PRINTED})
    found = [
        one
        for pipeline in REPRODUCTIONS[name].pipelines
        for one in summaries(pipeline, levels=tuple(levels), learner="cnn")
    ]
    return evidence(name, found)


def contest(name: str = "labels-beyond") -> Evidence:
    """What the pipelines of the contest might have found."""
    found: list[Row] = []
    levels = (0.5, 1.0)
    for pipeline in REPRODUCTIONS["labels-beyond"].pipelines:
        axes = {"n_classes": ("64", "100")} if pipeline.endswith("circle") else {}
        found += summaries(pipeline, ("vector",), levels, **axes)
        found += summaries(pipeline, ("auto",), levels, "auto", **axes)
        if pipeline.endswith("imbalanced"):
            found += summaries(pipeline, ("balanced",), levels, "auto")
    return evidence(name, found)


FOUND = {
    **dict.fromkeys(FIGURES, figure),
    **{name: table for name in REPRODUCTIONS if "table" in name},
    "labels-beyond": contest,
}


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_rows_are_complete_drawn_and_told(name: str) -> None:
    """No two share a name, protocols are the known ones, each data set has a panel."""
    entry = REPRODUCTIONS[name]
    rows = entry.rows(FOUND[name](name))
    check_rows(name, rows)
    accuracies = select(rows, quantity="accuracy")
    assert {one["protocol"] for one in accuracies} <= set(figures.LOOKS)
    assert all(one["n_classes"] >= 2 for one in rows)
    drawn = svg(name, rows)
    for setting in {one["setting"] for one in rows}:
        assert setting in drawn
    assert len(list(entry.conclusions(rows))) >= 3


def test_a_figure_has_a_column_for_each_number_of_classes() -> None:
    """A baseline stands once, whatever protocols bring it, and needs no learner."""
    entry = REPRODUCTIONS["figure-2-vec"]
    rows = entry.rows(figure())
    _, columns = entry.laid_out(rows)
    assert columns[-2:] == ["2 classes", "16 classes"]
    cell = select(rows, quantity="accuracy", setting="2/K", n_classes=16)
    assert [one["protocol"] for one in cell] == [*figures.LOOKS]
    assert {one["learner"] for one in select(cell, protocol="bayes")} == {None}


def test_the_bounds_are_held_against_what_neighbours_do() -> None:
    """In each cell of the figure, from a training set like its own."""
    rows = select(list(figures.bound_rows(figure())), quantity="value")
    assert len(rows) == 3 * 4
    for below, above in zip(
        select(rows, method="excess"), select(rows, method="excess_bound"), strict=True
    ):
        assert 0 <= below["curvote"] <= above["curvote"]
    assert min(one["curvote"] for one in select(rows, method="knn_bound_holds")) > 0.95


def test_the_radius_holds_the_share_that_it_should() -> None:
    """Of records drawn anew, around a point between two classes."""
    law, rng = CircleParameters(n_classes=5, sigma=0.3), np.random.default_rng(3)
    x = np.array([0.9, 0.4])
    drawn = CIRCLE.clients(law, 100_000, rng)["curve"]
    near = np.linalg.norm(drawn - x, axis=1) <= figures.share_radius(law, x, 0.1)
    assert near.mean() == pytest.approx(0.1, abs=0.004)


def test_every_printed_number_stands_beside_ours() -> None:
    """All 70 of three tables, LP-1ST beside randomized response."""
    rows = [
        one
        for name in REPRODUCTIONS
        if "table" in name
        for one in REPRODUCTIONS[name].rows(table(name))
    ]
    said = [one for one in rows if one["published"] is not None]
    assert len(said) == len(PRINTED) == 70
    place = {"setting": "cifar-10", "protocol": "rr", "epsilon": 1.0}
    assert select(said, **place)[0]["published"] == 60.0


def test_a_printed_cell_that_nobody_ran_is_told() -> None:
    """With its name, where the user has a pipeline of that name."""
    found = [one for one in table("table-3-vec").summaries if one["epsilon"] != 8]
    with pytest.raises(UserError, match=r"cifar-100 at epsilon 8"):
        REPRODUCTIONS["table-3-vec"].rows(evidence("table-3-vec", found))


def test_what_decides_for_balance_is_a_method_of_auto() -> None:
    """It stands beside what decides for accuracy, where classes are not alike."""
    rows = REPRODUCTIONS["labels-beyond"].rows(contest())
    mine = select(rows, protocol="auto", setting="imbalanced", epsilon=1.0)
    told = [(one["quantity"], one["method"]) for one in mine]
    assert told == [
        (quantity, method)
        for quantity in ("accuracy", "balanced_accuracy")
        for method in ("balanced", "labels")
    ]
    assert select(rows, quantity="balanced_accuracy", setting="mnist") == []
