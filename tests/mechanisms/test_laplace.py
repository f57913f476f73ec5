"""The Laplace mechanism: its grid, its clipping and its law."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from curvote.base.entropy import SeededEntropy
from curvote.mechanisms import make
from curvote.mechanisms.base import SMALLEST_EPSILON
from tests.noise import EPSILONS, SEED, Replay


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace_outputs_lie_on_the_grid(epsilon):
    """Whatever the input's low bits, the output is a multiple of 2^-20."""
    values = np.random.default_rng(SEED).uniform(-1, 1, 2000)
    out = make("laplace", epsilon=epsilon).randomize(values, SeededEntropy(SEED))
    assert (out * 2**20 == np.rint(out * 2**20)).all()


def test_laplace_clips_and_counts():
    """Values out of [-1, 1] are clipped, counted, and noised like the end point."""
    mechanism = make("laplace", epsilon=1)
    clipped, count = mechanism.clip([-3, -1, 0.5, 1, 1.0001])
    assert clipped.tolist() == [-1, -1, 0.5, 1, 1]
    assert count == 2
    far, end = (mechanism.randomize([x], SeededEntropy(SEED)) for x in (40, 1))
    assert far == end


def test_laplace_rounds_halves_to_even():
    """The declared mean is the grid point, halves going to the even one."""
    mechanism = make("laplace", epsilon=1)
    halves = np.array([0.5, 1.5, 2.5, -0.5]) * 2**-20
    assert (mechanism.mean(halves) == np.array([0, 2, 2, 0]) * 2**-20).all()


@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_laplace_is_near_its_continuous_law(epsilon):
    """The law is that of the continuous Laplace of scale 2/epsilon, up to the grid."""
    mechanism, at = make("laplace", epsilon=epsilon), np.linspace(-9, 9, 99)
    expected = stats.laplace(loc=0.25, scale=2 / epsilon).cdf(at)
    assert mechanism.cdf(0.25, at) == pytest.approx(expected, abs=epsilon * 2**-19)
    assert mechanism.variance(0.25) == pytest.approx(8 / epsilon**2, rel=1e-6)


@pytest.mark.parametrize("epsilon", [SMALLEST_EPSILON, 0.1, 10, 1e4, 1e300])
def test_laplace_cuts_off_inside_the_exact_noise(epsilon):
    """Noise cut for want of bits gives one and the same output for every input."""
    mechanism = make("laplace", epsilon=epsilon)
    cut = mechanism.noise.exact_below
    assert 0 < mechanism.limit <= 2**53
    for noise, x in product((cut, -cut), (-1, 0, 1)):
        mechanism.noise = type("Cut", (), {"sample": lambda *_, k=noise: np.array(k)})
        out = mechanism.randomize(x, Replay())
        assert out == math.copysign(mechanism.limit * 2**-20, noise)
