"""Draws that end as soon as a target is decided."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.validate import FloatArray
from curvote.systems.utility.method.channel import Channel, make_channel
from curvote.systems.utility.method.engines.base import Question
from curvote.systems.utility.method.engines.black_box import (
    BlackBox,
    BlackBoxSurface,
    decide_average,
    decide_records,
)
from tests.utility import models_of
from tests.utility.black_boxes import grid_shares


@cache
def known() -> tuple[BlackBoxSurface, Channel, FloatArray]:
    """Return 60 records of a network, a channel, and the exact agreements."""
    data = models_of.stroke_like()
    question = Question(models_of.network(), data.X[:60], data.sensitive, data.bounds)
    surface = BlackBox().surface(question)
    assert isinstance(surface, BlackBoxSurface)
    middle = data.bounds.mean(axis=1)
    noise = make_channel("pm_01", epsilon=3, bounds=data.bounds, fill_value=middle)
    return surface, noise, grid_shares(surface, noise, 200)


@pytest.mark.parametrize("target", [0.6, 0.8])
def test_each_record_is_decided(target: float) -> None:
    """From .05 away: by 1,000 draws in the mean; wrong in at most 5 % of all."""
    surface, noise, truth = known()
    found = decide_records(surface, noise, target, most=4000, entropy=SeededEntropy(1))
    far = abs(truth - target) >= 0.05
    assert far.sum() > 30
    assert found.queries[far].mean() <= 1000
    assert (found.side[far] != 0).all()
    wrong = found.side * np.sign(truth - target) < 0
    assert wrong.mean() <= 0.05
    assert ((found.lower <= truth) & (truth <= found.upper)).mean() >= 0.95


def test_average_is_decided_from_few_draws() -> None:
    """One draw of a record at random tells of the average."""
    surface, noise, truth = known()
    for target, side in ((truth.mean() - 0.1, 1), (truth.mean() + 0.1, -1)):
        found = decide_average(surface, noise, target, entropy=SeededEntropy(4))
        assert found.side.tolist() == [side]
        assert found.queries[0] <= 1000
        assert found.lower[0] <= truth.mean() <= found.upper[0]


def test_draws_run_out_before_a_target_that_is_met() -> None:
    """A target next to the truth stays open, and no more is asked than was allowed."""
    surface, noise, truth = known()
    met = float(truth[np.argmin(abs(truth - 0.7))])
    found = decide_records(surface, noise, met, most=120, entropy=SeededEntropy(2))
    assert found.side[np.argmin(abs(truth - met))] == 0
    assert found.queries.max() == 120
    assert set(found.queries.tolist()) == {50, 100, 120}


def test_decisions_repeat_from_a_seed() -> None:
    """A study's decision is the same again."""
    surface, noise, _ = known()
    one, two = (
        decide_average(surface, noise, 0.7, entropy=SeededEntropy(9)) for _ in "ab"
    )
    assert one.queries == two.queries
    assert one.lower == two.lower
