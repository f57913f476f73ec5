"""Draws that several channels share, weighed by exact ratios of their laws."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.systems.utility.method.channel import Channel, make_channel
from curvote.systems.utility.method.engines import black_box as pools
from curvote.systems.utility.method.engines.base import Answers, Draws, Question
from curvote.systems.utility.method.engines.black_box import (
    BlackBox,
    BlackBoxSurface,
    PoolSurface,
    draw_pool,
)
from tests.utility import models_of
from tests.utility.black_boxes import grid_shares

STROKE = models_of.stroke_like()
TOTALS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 8.0)


@cache
def channel(name: str, epsilon: float) -> Channel:
    """Return the channel of a mechanism on the generated data's bounds."""
    middle = STROKE.bounds.mean(axis=1)
    return make_channel(name, epsilon=epsilon, bounds=STROKE.bounds, fill_value=middle)


@cache
def surface() -> BlackBoxSurface:
    """Return 20 records of a network."""
    question = Question(
        models_of.network(), STROKE.X[:20], STROKE.sensitive, STROKE.bounds
    )
    found = BlackBox().surface(question)
    assert isinstance(found, BlackBoxSurface)
    return found


@cache
def grid() -> PoolSurface:
    """Return a pool of seven totals, 300 draws of each."""
    channels = [channel("pm_01", epsilon) for epsilon in TOTALS]
    return draw_pool(surface(), channels, Draws(300, entropy=SeededEntropy(3)))


def shared(noise: Channel, number: int = 300) -> Answers:
    """Return what the pool says of a channel, in the place of so many draws."""
    return grid().answers(noise, Draws(number, entropy=SeededEntropy(6)))


def covered(found: Answers, noise: Channel) -> float:
    """Return the share of the records whose interval holds the truth."""
    i = np.arange(20)
    truth = grid_shares(surface(), noise, 120)
    low, high = (each[i, surface().clean] for each in (found.lower, found.upper))
    return float(((low <= truth) & (truth <= high)).mean())


def width(found: Answers) -> float:
    """Return the mean width."""
    return float((found.upper - found.lower).mean())


def test_weights_of_every_channel_average_one() -> None:
    """Laws with atoms (levels, edges after clipping), windows and mixtures together."""
    names = ("pm_01", "laplace", "k_rr", "joint_box", "exponential", "duchi")
    channels = [channel(name, 2.0) for name in names]
    drawn = draw_pool(surface(), channels, Draws(60, entropy=SeededEntropy(1)))
    for noise in channels:
        weights = drawn.points.weights(noise)
        assert weights.max() <= len(names) * (1 + 1e-9)
        error = weights.std() / np.sqrt(weights.size)
        assert abs(weights.mean() - 1) <= 4.5 * error


def test_intervals_of_channels_cover() -> None:
    """With a channel's own answers, or those of all where that is narrower."""
    channels = [channel("pm_01", epsilon) for epsilon in TOTALS]
    found = [covered(shared(noise), noise) for noise in channels]
    assert np.mean(found) >= 0.95


def test_neighbours_narrow_an_interval() -> None:
    """As with twice the draws at least, where the totals are alike."""
    noise = channel("pm_01", 1.5)
    alone = surface().answers(noise, Draws(600, entropy=SeededEntropy(2)))
    found = shared(noise)
    assert width(found) < width(alone)
    assert (found.queries == 300 * len(TOTALS)).all()


def test_new_draws_are_taken_where_the_pool_adds_little() -> None:
    """A total of 8 after small ones: 300 draws of its own, by Clopper-Pearson."""
    noise = channel("pm_01", 8.0)
    assert grid().worth(noise) < pools.WEIGHTED_DRAW_COST * 300
    alone = surface().answers(noise, Draws(300, entropy=SeededEntropy(6)))
    assert (shared(noise).lower == alone.lower).all()
    assert (shared(noise).queries == 300).all()


def test_channel_without_a_law_is_drawn() -> None:
    """The pool has nothing to say of it."""
    found = shared(channel("privunit", 2.0), 50)
    assert (found.queries == 50).all()


@pytest.mark.parametrize(("name", "epsilon"), [("pm_01", 1.25), ("sw_01", 2.0)])
def test_channel_that_was_not_drawn_is_answered(name: str, epsilon: float) -> None:
    """Another epsilon, even another mechanism, asks the model nothing."""
    noise = channel(name, epsilon)
    found = shared(noise, 200)
    assert covered(found, noise) >= 0.95
    assert found.queries[0] == grid().answer.shape[1]


def test_draws_taken_for_those_of_another_total_are_caught() -> None:
    """The broken twin: all draws counted as if every one were of a total of 8."""

    class Unweighed(pools.PoolPoints):
        def weights(self, channel: Channel) -> pools.FloatArray:
            return np.ones_like(self.mean)

    def unweighed(points: pools.PoolPoints) -> pools.PoolPoints:
        return Unweighed(
            **{name: getattr(points, name) for name in points.__match_args__}
        )

    points, pilot = (unweighed(each) for each in (grid().points, grid().pilot))
    noise = channel("pm_01", 8.0)
    twin = replace(grid(), points=points, pilot=pilot)
    assert covered(twin.answers(noise, Draws(300)), noise) < 0.5


def test_lower_ends_hold_for_unequal_values() -> None:
    """Two kinds of values of unequal means: missed with at most .025."""
    rng = np.random.default_rng(2)
    shares = np.r_[np.full(100, 0.2), np.full(100, 0.9)]
    hits = rng.random((4000, 200)) < shares
    values = hits * np.where(rng.random((4000, 200)) < 0.25, 3.0, 1 / 3)
    low = pools._lower_means(values, 0.1, -np.log(0.025))
    assert (low > shares.mean()).mean() <= 0.025
    assert (low > shares.mean() - 0.35).mean() > 0.9


def test_channel_without_a_law_is_refused() -> None:
    """It says which, and what to do."""
    with pytest.raises(UserError, match="privunit has no law"):
        draw_pool(surface(), [channel("privunit", 2.0)], Draws(10))


def test_pool_that_does_not_fit_is_refused() -> None:
    """Points are counted before any is drawn."""
    with pytest.raises(UserError, match="12,000,000 points does not fit"):
        draw_pool(surface(), [channel("pm_01", 2.0)], Draws(600_000))
