"""The Laplace mechanism: its grid, its clipping and its law."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from curvote.base.entropy import SeededEntropy
from curvote.mechanisms import gaussian, make
from curvote.mechanisms.base import SMALLEST_EPSILON
from tests.noise import EPSILONS, SEED, Replay, build


@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_laplace_is_near_its_continuous_law(epsilon):
    """The law is that of the continuous Laplace of scale 2/epsilon, up to the grid."""
    mechanism, at = make("laplace", epsilon=epsilon), np.linspace(-9, 9, 99)
    expected = stats.laplace(loc=0.25, scale=2 / epsilon).cdf(at)
    assert mechanism.cdf(0.25, at) == pytest.approx(expected, abs=epsilon * 2**-19)
    assert mechanism.variance(0.25) == pytest.approx(8 / epsilon**2, rel=1e-6)


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_outputs_lie_on_the_grid(name, epsilon):
    """Whatever the input's low bits, outputs are multiples of 2^-20, halves to even."""
    mechanism = build(name, epsilon, **{"d": 4} if name == "gaussian" else {})
    values = np.random.default_rng(SEED).uniform(-1, 1, (500, 4))
    steps = mechanism.randomize(values, SeededEntropy(SEED)) * 2**20
    assert (steps == np.rint(steps)).all()
    halves = np.array([[0.5, 1.5, 2.5, -0.5]]) * 2**-20
    assert (mechanism.mean(halves) == np.array([[0, 2, 2, 0]]) * 2**-20).all()


@pytest.mark.parametrize("epsilon", [SMALLEST_EPSILON, 0.1, 10, 1e4, 1e300])
def test_the_cut_of_laplace_gives_every_input_the_same_output(epsilon):
    """Noise cut for want of bits gives one and the same output for every input."""
    mechanism = make("laplace", epsilon=epsilon)
    cut = mechanism.noise.exact_below
    assert 0 < mechanism.limit <= 2**53
    for noise, x in product((cut, -cut), (-1, 0, 1)):
        mechanism.noise = type("Cut", (), {"sample": lambda *_, k=noise: np.array(k)})
        out = mechanism.randomize(x, Replay())
        assert out == math.copysign(mechanism.limit * 2**-20, noise)


@pytest.mark.parametrize("epsilon", [2.0**-20, 1, 1e300])
def test_the_cut_of_gaussian_gives_every_input_the_same_output(epsilon):
    """The same of its noise."""
    mechanism = make("gaussian", epsilon=epsilon, d=1, delta=1e-6)
    assert mechanism.noise.law.proposal.exact_below >= gaussian.EXACT_BELOW
    cut = (1 << 63) - 1
    for noise, x in product((cut, -cut), (-1, 0, 1)):
        fixed = {"sample": lambda *_, k=noise: np.array([k])}
        object.__setattr__(mechanism.noise, "law", type("Cut", (), fixed))
        out = mechanism.randomize([[x]], Replay())
        assert out == math.copysign(gaussian.OUTPUT_LIMIT * 2**-20, noise)
