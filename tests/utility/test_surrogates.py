"""Trees beside a black box: their share is exact, and only the difference is drawn."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.systems.utility.method import quantification
from curvote.systems.utility.method.engines import base
from curvote.systems.utility.method.engines.black_box import BlackBox, BlackBoxSurface
from tests.utility import models_of
from tests.utility.black_boxes import grid_shares

STROKE = models_of.stroke_like()
channel = partial(models_of.channel, STROKE)


@cache
def fitted(queries=5000, kind="network"):
    """Return trees fitted to a model's answers."""
    return quantification.surrogate(
        getattr(models_of, kind)(),
        STROKE.X,
        sensitive=STROKE.sensitive,
        bounds=STROKE.bounds,
        queries=queries,
    )


@cache
def surfaces(n=30, kind="network"):
    """Return a model's surface of ``n`` records, and the one with trees beside."""
    model = getattr(models_of, kind)()
    question = base.Question(model, STROKE.X[:n], STROKE.sensitive, STROKE.bounds)
    alone = BlackBox().surface(question)
    assert isinstance(alone, BlackBoxSurface)
    return alone, fitted(kind=kind).beside(alone)


def covered(beside, noise, truth, draws):
    """Return the share of 30 records x 4 runs whose interval holds the truth."""
    i = np.arange(len(truth))
    inside = []
    for seed in range(4):
        found = beside.answers(noise, base.Draws(draws, 0.95, SeededEntropy(seed)))
        low, high = (each[i, beside.clean] for each in (found.lower, found.upper))
        inside.append((low <= truth) & (truth <= high))
    return float(np.mean(inside))


@pytest.mark.parametrize("name", ["pm_01", "joint_box"])
def test_intervals_cover(name):
    """At least 92 % of 120 cases at 95 %, though the trees differ in 8 % of draws."""
    alone, beside = surfaces()
    noise = channel(name)
    truth = grid_shares(alone, noise, 150)
    assert covered(beside, noise, truth, 300) >= 0.92


def test_half_the_draws_are_as_narrow():
    """1,000 draws with trees are narrower than 2,000 without, in the mean."""
    alone, beside = surfaces(kind="boosting")
    found = beside.answers(channel(), base.Draws(1000, 0.95, SeededEntropy(1)))
    plain = alone.answers(channel(), base.Draws(2000, 0.95, SeededEntropy(1)))
    widths = [(each.upper - each.lower).mean() for each in (found, plain)]
    assert widths[0] <= widths[1]
    assert (found.queries == 1000).all()
    assert found.evidence == "draws"


def test_trees_taken_for_the_model_are_caught():
    """The broken twin, whose draws tell nothing: the share of poor trees stands."""

    class Blind(quantification.SurrogateSurface):
        def differences(self, channel, draws):
            more, less = super().differences(channel, draws)
            return more * 0, less * 0

    alone, _ = surfaces()
    noise = channel()
    truth = grid_shares(alone, noise, 150)
    poor = fitted(60).beside(alone)
    blind = Blind(**{name: getattr(poor, name) for name in poor.__dataclass_fields__})
    assert covered(poor, noise, truth, 300) >= 0.92
    assert covered(blind, noise, truth, 300) < 0.8


def test_queries_are_those_asked_for():
    """All of them, public records with sensitive values within the bounds."""

    class Recorder:
        def __init__(self):
            self.rows = np.empty((0, 6))

        def predict(self, rows):
            self.rows = np.vstack([self.rows, rows])
            return models_of.network().predict(rows)

    model = Recorder()
    made = quantification.surrogate(
        model, STROKE.X, sensitive=(0, 5), bounds=STROKE.bounds, queries=501
    )
    assert made.queries == len(model.rows) == 501
    low, high = STROKE.bounds.T
    asked = model.rows[:, [0, 5]]
    assert ((asked >= low) & (asked <= high)).all()
    assert ((asked == low) | (asked == high)).any(axis=0).all()
    others = {tuple(row) for row in STROKE.X[:, 1:5]}
    assert {tuple(row) for row in model.rows[:, 1:5]} <= others


def test_same_seed_gives_the_same_trees():
    """A study repeats."""
    rows = STROKE.X[:50]
    votes = [fitted.__wrapped__(400).trees.predict_proba(rows) for _ in range(2)]
    assert (votes[0] == votes[1]).all()


def test_trees_that_must_be_drawn_leave_their_part_of_the_confidence():
    """Noise that is no mixture of products: the trees' free draws pay their share."""
    alone, beside = surfaces(10)
    noise = channel("privunit", 2.0)
    drawn = beside.answers(noise, base.Draws(300, 0.95, SeededEntropy(1)))
    many = alone.counts(noise, 20_000, SeededEntropy(2)) / 20_000
    slack = 4.5 * np.sqrt(0.25 / 20_000)
    assert (drawn.lower - slack <= many).all()
    assert (many <= drawn.upper + slack).all()


def test_few_outputs_need_no_trees():
    """Duchi's four outputs are asked for, as without trees."""
    _, beside = surfaces(10)
    found = beside.answers(channel("duchi"), base.Draws(300))
    assert found.evidence == "exact"
    assert (found.queries == 4).all()


def test_trees_of_one_answer_only_still_cover():
    """Public records that tell of one class: the other class is all difference."""
    alone, _ = surfaces(10)
    young = STROKE.X[STROKE.X[:, 0] < 30]
    made = quantification.surrogate(
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


def test_public_must_be_records():
    """One row is no table."""
    with pytest.raises(UserError, match="must be records"):
        quantification.surrogate(
            models_of.network(), STROKE.X[0], sensitive=(0,), bounds=STROKE.bounds[:1]
        )
