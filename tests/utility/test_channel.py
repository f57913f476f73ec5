"""The channel: what is drawn follows the law, in the model's own units."""

import math
from dataclasses import replace

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.mechanisms import make
from curvote.systems.utility.method.engines.base import (
    Channel,
    Part,
    make_channel,
)
from tests.noise import SEED

DRAWS = 10_000
BOUNDS = np.array([[0.0, 100.0], [12.0, 60.0], [-2e6, 1e6]])
INSTEAD = np.array([45.0, 28.1, 3.0])
# Inside, at an edge, and beyond the bounds.
VALUES = np.array([[79.0, 24.0, 0.5], [0.0, 60.0, 1e6], [140.0, 5.0, -3e6]])

MECHANISMS = {
    "laplace": {},
    "pm_01": {},
    "piecewise": {},
    "hybrid": {},
    "square_wave": {},
    "exponential": {"size": 11},
    "duchi": {},
    "k_rr": {},
    "hadamard": {"n_classes": 5},
    "joint_box": {},
    "duchi_vector": {},
    "sampled": {"k": 2},
    "gaussian": {"delta": 1e-3},
}


def built(name, clip=True, epsilon=6.0):
    """The channel of one mechanism on all three features."""
    params = MECHANISMS[name]
    return make_channel(
        name, epsilon=epsilon, bounds=BOUNDS, fill_value=INSTEAD, clip=clip, **params
    )


def agrees(channel, values=VALUES):
    """Say whether draws fall into boxes as often as the law says, at 4.5 errors."""
    law, n = channel.law(values), len(values)
    draws = channel.draw(np.repeat(values, DRAWS, axis=0), SeededEntropy(SEED))
    draws = draws.reshape(n, DRAWS, -1)
    rest, worst = draws[:, 40:], 0.0
    for i in range(0, 40, 2):
        low, high = draws[:, i : i + 2].min(axis=1), draws[:, i : i + 2].max(axis=1)
        inside = ((rest >= low[:, None]) & (rest <= high[:, None])).all(axis=2)
        chance = law.box(low, high)
        error = np.sqrt(chance * (1 - chance) / rest.shape[1]) + 1 / rest.shape[1]
        worst = max(worst, np.max(np.abs(inside.mean(axis=1) - chance) / error))
    return worst < 4.5


@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize("name", MECHANISMS)
def test_draws_follow_the_law(name, clip):
    """In boxes, for records inside the bounds, at an edge and beyond."""
    assert agrees(built(name, clip))


def test_another_law_is_noticed():
    """The law without clipping is not that of clipped draws, nor the other way."""
    for name in ("laplace", "piecewise"):
        channel, other = built(name, clip=True), built(name, clip=False)

        class Mixed(Channel):
            law = other.law

        assert not agrees(Mixed(channel.parts, BOUNDS, INSTEAD))


@pytest.mark.parametrize("clip", [True, False])
def test_parts_in_parallel(clip):
    """A record mechanism on two features, levels on one; then one of them withheld."""
    joint, levels = (
        make("joint_box", epsilon=3, d=2),
        make("k_rr", epsilon=2, n_classes=7),
    )
    both = Channel([Part(joint, (2, 0)), Part(levels, (1,))], BOUNDS, INSTEAD, clip)
    assert agrees(both)
    assert len(both.law(VALUES).terms) == 2
    alone = Channel([Part(joint, (2, 0))], BOUNDS, INSTEAD, clip)
    assert agrees(alone)
    assert (alone.draw(VALUES, SeededEntropy(0))[:, 1] == INSTEAD[1]).all()


def test_two_records_of_terms():
    """Two parts of two terms have four; their weights are products."""
    one = make("joint_box", epsilon=3, d=2), make("joint_box", epsilon=1, d=1)
    channel = Channel([Part(one[0], (0, 1)), Part(one[1], (2,))], BOUNDS, INSTEAD)
    law = channel.law(VALUES)
    assert len(law.terms) == 4
    assert law.weights.sum(axis=1) == pytest.approx(1)
    assert len({id(each) for term in law.terms for each in term}) == 6
    assert agrees(channel)


def test_withheld_features_cost_nothing():
    """A share of 0 is a constant; all withheld is a law of one point."""
    split = {"split": [0.25, 0, 0.75], "bounds": BOUNDS, "fill_value": INSTEAD}
    channel = make_channel("pm_01", epsilon=4, **split)
    assert [part.places for part in channel.parts] == [(0,), (2,)]
    assert [part.mechanism.epsilon for part in channel.parts] == [1, 3]
    assert agrees(channel)
    vector = make_channel("joint_box", epsilon=4, **split)
    assert [part.places for part in vector.parts] == [(0, 2)]
    assert vector.parts[0].mechanism.epsilon == 4
    nothing = Channel([], BOUNDS, INSTEAD)
    point = np.tile(INSTEAD, (3, 1))
    assert np.array_equal(nothing.draw(VALUES, SeededEntropy(0)), point)
    assert nothing.law(VALUES).box(point, point) == pytest.approx(1)


@pytest.mark.parametrize("bounds", [(0, 100), (12, 60), (-3, 0.1), (1e-7, 3e-7)])
def test_own_level_is_hit_exactly(bounds):
    """The atom at a record's level is where draws are, to the last bit."""
    edges, n = np.array([bounds]), 37
    levels = make("k_rr", epsilon=60, n_classes=n)
    channel = Channel([Part(levels, (0,))], edges, edges.mean(axis=1))
    low, high = edges.T
    values = low + (high - low) * np.arange(n)[:, None] / (n - 1)
    law = channel.law(values).terms[0][0]
    draws = channel.draw(values, SeededEntropy(SEED))[:, 0]
    assert len(np.unique(draws)) == n
    assert law.between(draws, draws).diagonal() == pytest.approx(1)
    assert np.abs(draws - values[:, 0]).max() <= 1e-15 * np.abs(edges).max() * 4


@pytest.mark.parametrize("name", ["pm_01", "piecewise", "joint_box"])
def test_window_of_one_point_is_where_draws_are(name):
    """At a total of 300 the draw is the record's grid point: the law jumps there."""
    channel = built(name, epsilon=300)
    values = np.clip(VALUES, *BOUNDS.T)
    draws = channel.draw(values, SeededEntropy(SEED))
    assert channel.law(values).box(draws, draws) == pytest.approx(1, abs=1e-3)
    beside = np.nextafter(draws, math.inf)
    assert (channel.law(values).box(beside, beside + 1) < 1e-3).all()


def test_record_beyond_the_bounds_is_moved_to_the_edge():
    """Its law is that of the edge."""
    for name in ("laplace", "k_rr", "joint_box"):
        channel = built(name)
        moved = np.clip(VALUES, *BOUNDS.T)
        low, high = BOUNDS[:, 0] - 1, BOUNDS.mean(axis=1)
        ends = np.tile(low, (3, 1)), np.tile(high, (3, 1))
        inside = channel.law(VALUES).box(*ends)
        assert np.array_equal(inside, channel.law(moved).box(*ends))


def test_no_law_is_passed_on():
    """Where a mechanism has none, or there would be too many terms."""
    none = make_channel("privunit", epsilon=4, bounds=BOUNDS, fill_value=INSTEAD)
    assert none.law(VALUES) is None
    assert none.draw(VALUES, SeededEntropy(0)).shape == (3, 3)
    wide = [Part(make("duchi_vector", epsilon=1, d=7), tuple(range(7)))] * 2
    bounds = np.tile([0.0, 1.0], (14, 1))
    parts = [wide[0], replace(wide[1], places=tuple(range(7, 14)))]
    assert Channel(parts, bounds, np.zeros(14)).law(np.zeros((2, 14))) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"mechanism": "laplase"}, "Did you mean 'laplace'"),
        ({"size": 4}, "size"),
    ],
)
def test_refusals(given, message):
    """One message says what is wrong."""
    usual = {
        "mechanism": "laplace",
        "epsilon": 1,
        "bounds": BOUNDS,
        "fill_value": INSTEAD,
    }
    with pytest.raises(UserError, match=message):
        make_channel(**(usual | given))
