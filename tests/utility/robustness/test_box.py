"""Radius and hyperrectangle: never wrong, and as large as they can be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from curvote.systems.utility.method.profile import SIDE_PRECISION, Box, certify_box
from tests.utility.robustness.fakes import Fake, half_space, surface

BOUNDS = np.array([[0.0, 100.0], [-3.0, 1.0], [0.0, 1e-3]])
WIDTHS = BOUNDS[:, 1] - BOUNDS[:, 0]


def records(n: int, seed: int = 0) -> np.ndarray:
    """Records uniform in the bounds."""
    return BOUNDS[:, 0] + WIDTHS * np.random.default_rng(seed).random((n, 3))


def planes(values: np.ndarray, seed: int = 1) -> tuple[np.ndarray, float]:
    """A plane through the middle of the bounds, on the features' own units."""
    slope = np.random.default_rng(seed).normal(size=3) / WIDTHS
    return slope, -float(slope @ BOUNDS.mean(axis=1))


def answers_stay(found: Box, slope: np.ndarray, offset: float, values) -> bool:
    """Say whether random points and all corners of certified boxes answer alike."""
    rng = np.random.default_rng(5)
    share = rng.integers(0, 2, (200, *values.shape)) * 1.0
    share[100:] = rng.random((100, *values.shape))
    points = found.low + (found.high - found.low) * share
    own = np.sign(values @ slope + offset)
    same = (np.sign(points @ slope + offset) == own).all(axis=0)
    return bool(same[found.certified].all())


@pytest.mark.parametrize("seed", range(4))
def test_linear_boxes(seed):
    """The radius is the exact one within the precision, and no side can move on."""
    values = records(200, seed)
    slope, offset = planes(values, seed)
    known = half_space(slope, offset, values)
    found = certify_box(known, values, bounds=BOUNDS)
    assert found.certified.all()
    assert answers_stay(found, slope, offset, values)
    for shorter, holds in ((-0.001, True), (2 * SIDE_PRECISION, False)):
        reach = (found.radius + shorter)[:, None] * WIDTHS
        ends = (
            np.maximum(values - reach, BOUNDS[:, 0]),
            np.minimum(values + reach, BOUNDS[:, 1]),
        )
        assert (known.holds(*ends) == holds)[found.radius < 1].all()
    for i in range(3):
        for j in range(2):
            ends = [found.low.copy(), found.high.copy()]
            ends[j][:, i] += (2 * j - 1) * 2 * SIDE_PRECISION * WIDTHS[i]
            inside = (ends[j][:, i] > BOUNDS[i, 0]) & (ends[j][:, i] < BOUNDS[i, 1])
            assert not known.holds(*ends)[inside].any()


def test_box_holds_the_ball():
    """The sides only grow, and the radius is that of the largest ball inside."""
    values = records(100)
    found = certify_box(half_space(*planes(values), values), values, bounds=BOUNDS)
    reach = found.radius[:, None] * WIDTHS * (1 - 1e-12)
    assert (found.low <= np.maximum(values - reach, BOUNDS[:, 0])).all()
    assert (found.high >= np.minimum(values + reach, BOUNDS[:, 1])).all()
    assert (found.low >= BOUNDS[:, 0]).all()
    assert (found.high <= BOUNDS[:, 1]).all()


def test_constant_answer_holds_everywhere():
    """Radius 1, and the box is the bounds."""
    values = records(5)
    always = surface(lambda low, high: np.ones(len(low), dtype=bool))
    found = certify_box(always, values, bounds=BOUNDS)
    assert (found.radius == 1).all()
    assert np.array_equal(np.stack([found.low[0], found.high[0]], axis=1), BOUNDS)


def test_nothing_that_holds_is_no_box():
    """Where not even the record itself is certain, the box is the record, and not."""
    values = records(5)
    never = surface(lambda low, high: np.zeros(len(low), dtype=bool))
    found = certify_box(never, values, bounds=BOUNDS)
    assert not found.certified.any()
    assert (found.radius == 0).all()
    assert np.array_equal(found.low, values)
    assert np.array_equal(found.high, values)


def forgetful(known: Fake, seed: int) -> Fake:
    """A surface that cannot tell, at random, in a third of the cases."""
    rng = np.random.default_rng(seed)
    return surface(
        lambda low, high: known.holds(low, high) & (rng.random(len(low)) < 0.7)
    )


def test_surface_that_cannot_tell_costs_size_only():
    """Its boxes are smaller, and still no answer in them differs."""
    values = records(200)
    slope, offset = planes(values)
    known = half_space(slope, offset, values)
    found = certify_box(forgetful(known, 3), values, bounds=BOUNDS)
    assert answers_stay(found, slope, offset, values)
    assert known.holds(found.low, found.high)[found.certified].all()
    assert not found.certified.all()
    best = certify_box(known, values, bounds=BOUNDS)
    assert (found.radius <= best.radius + SIDE_PRECISION).all()


@pytest.mark.parametrize("told", [1.0, 0.7])
def test_few_boxes_are_tried(told):
    """About a hundred for all records together, even where the surface is not sure."""
    values, tries = records(200), []
    known = half_space(*planes(values), values)
    rng = np.random.default_rng(8)

    def counted(low, high):
        tries.append(len(low))
        return known.holds(low, high) & (rng.random(len(low)) < told)

    certify_box(surface(counted), values, bounds=BOUNDS)
    assert len(tries) <= 17 + 6 * (5 + 10)


def test_surface_that_lies_is_noticed():
    """The check above fails where boxes are certified that do not hold."""
    values = records(200)
    slope, offset = planes(values)
    liar = half_space(slope, offset + 0.2 * np.sign(offset), values)
    found = certify_box(liar, values, bounds=BOUNDS)
    assert not answers_stay(found, slope, offset, values)


def test_record_beyond_the_bounds():
    """It is moved to the edge, as its noised value would be."""
    values = np.array([[150.0, -9.0, 5e-4]])
    found = certify_box(half_space([1, 0, 0], -50.0, values), values, bounds=BOUNDS)
    assert found.low[0] == pytest.approx([50, -3, 0], abs=100 * SIDE_PRECISION)
    assert found.high[0] == pytest.approx(BOUNDS[:, 1])
    assert found.radius[0] == pytest.approx(0.5, abs=SIDE_PRECISION)


def inside_disc(low, high):
    """Where the classifier of Zheng & Hu's example 4 answers with its first class."""
    furthest = np.maximum(np.abs(low + 1), np.abs(high + 1))
    return (furthest**2).sum(axis=1) < 4 * (math.log(2) + 1)


def test_example_4_of_the_paper():
    """QDA at (.5, .5): .3402 in the maximum norm; .4811 in the Euclidean one."""
    values, bounds = np.array([[0.5, 0.5]]), np.array([[0.0, 1.0]] * 2)
    found = certify_box(surface(inside_disc), values, bounds=bounds)
    assert found.radius[0] == pytest.approx(0.3402, abs=5e-5)
    angle = np.linspace(0, 2 * math.pi, 100_001)
    circle = 2 * math.sqrt(math.log(2) + 1) * np.array([np.cos(angle), np.sin(angle)])
    euclidean = np.linalg.norm(circle.T - 1 - values, axis=1).min()
    assert euclidean == pytest.approx(0.4811, abs=1e-4)
    assert found.low[0] == pytest.approx([0, 0])


def test_surface_that_knows_no_boxes():
    """Its refusal is passed on."""

    def unknown(low, high):
        raise NotImplementedError

    with pytest.raises(NotImplementedError):
        certify_box(surface(unknown), records(2), bounds=BOUNDS)
