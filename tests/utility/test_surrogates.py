"""Trees beside a black box: their share is exact, and only the difference is drawn."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.systems.utility.method.engines.base import (
    Channel,
    Draws,
    Question,
    make_channel,
)
from curvote.systems.utility.method.engines.black_box import BlackBox, BlackBoxSurface
from curvote.systems.utility.method.quantification import (
    Surrogate,
    SurrogateSurface,
    surrogate,
)
from tests.utility import models_of
from tests.utility.black_boxes import grid_shares

STROKE = models_of.stroke_like()


@cache
def fitted(queries: int = 5000, kind: str = "network") -> Surrogate:
    """Return trees fitted to a model's answers."""
    return surrogate(
        getattr(models_of, kind)(),
        STROKE.X,
        sensitive=STROKE.sensitive,
        bounds=STROKE.bounds,
        queries=queries,
    )


@cache
def surfaces(
    n: int = 30, kind: str = "network"
) -> tuple[BlackBoxSurface, SurrogateSurface]:
    """Return a model's surface of ``n`` records, and the one with trees beside."""
    model = getattr(models_of, kind)()
    question = Question(model, STROKE.X[:n], STROKE.sensitive, STROKE.bounds)
    alone = BlackBox().surface(question)
    assert isinstance(alone, BlackBoxSurface)
    return alone, fitted(kind=kind).beside(alone)


def channel(name: str = "pm_01", epsilon: float = 2.0, **params: Any) -> Channel:
    """Return the channel of a mechanism on the generated data's bounds."""
    middle = STROKE.bounds.mean(axis=1)
    return make_channel(
        name, epsilon=epsilon, bounds=STROKE.bounds, fill_value=middle, **params
    )


def covered(
    beside: SurrogateSurface, noise: Channel, truth: FloatArray, draws: int
) -> float:
    """Return the share of 30 records x 4 runs whose interval holds the truth."""
    i = np.arange(len(truth))
    inside = []
    for seed in range(4):
        found = beside.answers(noise, Draws(draws, 0.95, SeededEntropy(seed)))
        low, high = (each[i, beside.clean] for each in (found.lower, found.upper))
        inside.append((low <= truth) & (truth <= high))
    return float(np.mean(inside))


@pytest.mark.parametrize("name", ["pm_01", "joint_box"])
def test_intervals_cover(name: str) -> None:
    """At least 92 % of 120 cases at 95 %, though the trees differ in 8 % of draws."""
    alone, beside = surfaces()
    noise = channel(name)
    truth = grid_shares(alone, noise, 150)
    assert covered(beside, noise, truth, 300) >= 0.92


def test_half_the_draws_are_as_narrow() -> None:
    """1,000 draws with trees are narrower than 2,000 without, in the mean."""
    alone, beside = surfaces(kind="boosting")
    found = beside.answers(channel(), Draws(1000, 0.95, SeededEntropy(1)))
    plain = alone.answers(channel(), Draws(2000, 0.95, SeededEntropy(1)))
    widths = [(each.upper - each.lower).mean() for each in (found, plain)]
    assert widths[0] <= widths[1]
    assert (found.queries == 1000).all()
    assert found.evidence == "draws"


def test_trees_taken_for_the_model_are_caught() -> None:
    """The broken twin, whose draws tell nothing: the share of poor trees stands."""

    class Blind(SurrogateSurface):
        def differences(self, channel: Channel, draws: Draws) -> Any:
            more, less = super().differences(channel, draws)
            return more * 0, less * 0

    alone, _ = surfaces()
    noise = channel()
    truth = grid_shares(alone, noise, 150)
    poor = fitted(60).beside(alone)
    blind = Blind(**{name: getattr(poor, name) for name in poor.__dataclass_fields__})
    assert covered(poor, noise, truth, 300) >= 0.92
    assert covered(blind, noise, truth, 300) < 0.8


def test_queries_are_those_asked_for() -> None:
    """All of them, public records with sensitive values within the bounds."""

    class Recorder:
        def __init__(self) -> None:
            self.rows = np.empty((0, 6))

        def predict(self, rows: FloatArray) -> Any:
            self.rows = np.vstack([self.rows, rows])
            return models_of.network().predict(rows)

    model = Recorder()
    made = surrogate(
        model, STROKE.X, sensitive=(0, 5), bounds=STROKE.bounds, queries=501
    )
    assert made.queries == len(model.rows) == 501
    low, high = STROKE.bounds.T
    asked = model.rows[:, [0, 5]]
    assert ((asked >= low) & (asked <= high)).all()
    assert ((asked == low) | (asked == high)).any(axis=0).all()
    others = {tuple(row) for row in STROKE.X[:, 1:5]}
    assert {tuple(row) for row in model.rows[:, 1:5]} <= others


def test_same_seed_gives_the_same_trees() -> None:
    """A study repeats."""
    rows = STROKE.X[:50]
    votes = [fitted.__wrapped__(400).trees.predict_proba(rows) for _ in range(2)]
    assert (votes[0] == votes[1]).all()


def test_trees_that_must_be_drawn_leave_their_part_of_the_confidence() -> None:
    """Noise that is no mixture of products: the trees' free draws pay their share."""
    alone, beside = surfaces(10)
    noise = channel("privunit", 2.0)
    drawn = beside.answers(noise, Draws(300, 0.95, SeededEntropy(1)))
    many = alone.counts(noise, 20_000, SeededEntropy(2)) / 20_000
    slack = 4.5 * np.sqrt(0.25 / 20_000)
    assert (drawn.lower - slack <= many).all()
    assert (many <= drawn.upper + slack).all()


def test_few_outputs_need_no_trees() -> None:
    """Duchi's four outputs are asked for, as without trees."""
    _, beside = surfaces(10)
    found = beside.answers(channel("duchi"), Draws(300))
    assert found.evidence == "exact"
    assert (found.queries == 4).all()


def test_trees_of_one_answer_only_still_cover() -> None:
    """Public records that tell of one class: the other class is all difference."""
    alone, _ = surfaces(10)
    young = STROKE.X[STROKE.X[:, 0] < 30]
    made = surrogate(
        models_of.network(),
        young,
        sensitive=(5,),
        bounds=STROKE.bounds[1:],
        queries=60,
    )
    noise = channel()
    truth = grid_shares(alone, noise, 150)
    one = replace(made, trees=made.trees.fit(young, np.zeros(len(young), dtype=int)))
    assert covered(one.beside(alone), noise, truth, 200) >= 0.92


def test_public_must_be_records() -> None:
    """One row is no table."""
    with pytest.raises(UserError, match="must be records"):
        surrogate(
            models_of.network(), STROKE.X[0], sensitive=(0,), bounds=STROKE.bounds[:1]
        )
