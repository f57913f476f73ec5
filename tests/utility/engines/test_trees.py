"""Trees and their ensembles: every cell has the answer of the model itself."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from curvote.systems.utility.method.engines.base import Draws, Question
from curvote.systems.utility.method.engines.trees import cells as axes_module
from curvote.systems.utility.method.engines.trees import engine
from tests.utility.models_of import DATA, digits_like, stroke_like
from tests.utility.trees_of import (
    KINDS,
    At,
    answered,
    asked,
    corners,
    fitted,
    predicted,
    read,
)

EVERY = list(product(KINDS, DATA))


@pytest.mark.parametrize(("kind", "data"), EVERY)
def test_a_cell_has_the_answer_of_the_model(kind: str, data: str) -> None:
    """At cuts, one float behind them and anywhere, and at the records themselves."""
    surface = read(asked(fitted(kind, data), data))
    for i in range(5):
        points = corners(surface, 400, seed=i)
        expected = predicted(surface.question, i, points)
        assert (answered(surface, i, points) == expected).all()
        own = surface.question.values[[i]]
        assert answered(surface, i, own)[0] == surface.clean[i]


def between_the_values_of_training() -> Question:
    """Return records whose values are in the middle of two that trees were fitted to.

    Thresholds are such middles, in float64 of float32 values: they are not the values.
    """
    from sklearn.ensemble import RandomForestClassifier

    given = stroke_like(400)
    X = given.X.copy()
    X[:, 0], X[:, 5] = np.round(X[:, 0] / 2) * 0.02, np.round(X[:, 5] / 2) * 0.02
    model = RandomForestClassifier(15, random_state=1).fit(X, given.y)
    records = X[:200].copy()
    records[:, [0, 5]] = np.round(records[:, [0, 5]] + 0.01, 2)
    return Question(model, records, (0, 5), np.array([[0.0, 1.02], [0.0, 1.02]]))


def shares_at_own_values(question: Question) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of the clean answer when nothing is noised, and the answers."""
    surface = read(question)
    channel: Any = At(question.values)
    share = surface.answers(channel, Draws()).share
    return share[np.arange(len(share)), surface.clean], surface.clean


def test_an_atom_at_the_own_value_lies_in_the_own_cell() -> None:
    """Values are compared as float32, as scikit-learn does."""
    share, _ = shares_at_own_values(between_the_values_of_training())
    assert (share == 1).all()


def test_without_the_cast_atoms_land_in_wrong_cells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The broken twin of the test above."""
    monkeypatch.setattr(axes_module, "float32_cuts", lambda thresholds: thresholds)
    share, _ = shares_at_own_values(between_the_values_of_training())
    assert (share == 0).any()


def test_a_cut_is_the_last_float_that_goes_left() -> None:
    """For thresholds between, on and half between float32 values."""
    rng = np.random.default_rng(1)
    single = rng.normal(size=300).astype(np.float32).astype(np.float64)
    following = np.nextafter(single.astype(np.float32), np.float32(9)).astype(float)
    given = np.concatenate([rng.normal(size=300), single, (single + following) / 2])
    cuts = axes_module.float32_cuts(given)
    after = np.nextafter(cuts, np.inf)
    assert (cuts.astype(np.float32).astype(float) <= given).all()
    assert (after.astype(np.float32).astype(float) > given).all()


def coarse(seed: int, classes: int) -> Question:
    """Return a forest of few impure leaves, which ties often."""
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 4, (40, 3)) * 1.0, rng.integers(0, classes, 40)
    model = RandomForestClassifier(6, max_depth=3, random_state=seed, bootstrap=False)
    bounds = np.array([[0.0, 3.0], [0.0, 3.0]])
    return Question(model.fit(X, y), X[:8], (0, 1), bounds)


GRID = np.array(list(product(range(4), range(4)))) * 1.0


def wrong_at_ties(question: Question) -> int:
    """Return at how many points of a grid cells and model differ."""
    surface = read(question)
    pairs = [
        (answered(surface, i, GRID), predicted(question, i, GRID)) for i in range(8)
    ]
    return int(sum((own != given).sum() for own, given in pairs))


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_near_ties_are_the_models_to_break(classes: int) -> None:
    """Sums of thirds tie or not by the order in which they are added."""
    questions = [coarse(seed, classes) for seed in range(12)]
    assert sum(read(each).query_counts.sum() for each in questions) > 0
    assert sum(wrong_at_ties(each) for each in questions) == 0


def test_ties_broken_by_exact_sums_are_sometimes_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The broken twin: nothing is asked."""
    known = engine.cells.whole_units

    def sure(table: Any) -> Any:
        found = known(table)
        return type(found)(found.value, found.start, 0)

    monkeypatch.setattr(engine.cells, "whole_units", sure)
    assert sum(wrong_at_ties(coarse(seed, 2)) for seed in range(12)) > 0


def test_forests_of_pure_leaves_ask_nothing() -> None:
    """Their sums are whole numbers: a tie is a tie, for the model as well."""
    assert read(asked(fitted("forest", "stroke"), "stroke")).query_counts.sum() == 0


def test_shares_that_miss_one_by_a_bit_are_no_exact_tie() -> None:
    """Their difference is 0, but not what adding them to others rounds to."""
    question = coarse(3, 2)
    trees = [each.tree_ for each in question.model.estimators_]
    for tree in trees:
        tree.value[:, 0] = np.eye(2)[np.argmax(tree.value[:, 0], axis=1)]
    assert read(question).query_counts.sum() == 0
    for tree in trees[::3]:
        tree.value[:, 0] = np.nextafter(0.5, 0)
    assert read(question).query_counts.sum() > 0
    assert wrong_at_ties(question) == 0


@pytest.mark.parametrize("kind", ["boosting from zero", "hist boosting"])
def test_a_sum_of_zero_is_the_models_own_class(kind: str) -> None:
    """Where nothing can be learnt the sum is 0: one kind says yes, the other no."""
    from sklearn.base import clone

    X = np.repeat(np.arange(4.0), 20)[:, None]
    model = clone(KINDS[kind]).fit(X, np.tile([0, 1], 40))
    surface = read(Question(model, X[:3], (0,), np.array([[0.0, 3.0]])))
    points = np.linspace(0, 3, 9)[:, None]
    expected = predicted(surface.question, 0, points)
    assert (answered(surface, 0, points) == expected).all()


@pytest.mark.parametrize("sensitive", [(4,), (0, 3, 7)])
@pytest.mark.parametrize("kind", ["boosting", "shallow forest", "hist boosting"])
def test_one_or_three_features_are_exact_as_well(
    kind: str, sensitive: tuple[int, ...]
) -> None:
    """Cells of any number of dimensions."""
    bounds = np.tile([0.0, 1.0], (len(sensitive), 1))
    records = digits_like(3, 5).X
    surface = read(Question(fitted(kind, "digits"), records, sensitive, bounds))
    for i in range(3):
        points = corners(surface, 300, seed=i)
        expected = predicted(surface.question, i, points)
        assert (answered(surface, i, points) == expected).all()
