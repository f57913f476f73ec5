"""The promises of every scalar mechanism, over the registry."""

import math
from itertools import product

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy, SystemEntropy
from curvote.mechanisms import laplace, make
from curvote.mechanisms.base import SMALLEST_EPSILON, FiniteMechanism, ScalarMechanism
from tests.noise import (
    EPSILONS,
    SEED,
    accepted,
    build,
    follows,
    names_of,
    probes,
)


@pytest.fixture(params=names_of(ScalarMechanism))
def name(request) -> str:
    """Each scalar mechanism of the registry in turn."""
    return request.param


def some_outputs(mechanism) -> np.ndarray:
    """All outputs of a finite mechanism, or what it gave for inputs everywhere."""
    if isinstance(mechanism, FiniteMechanism):
        return mechanism.outputs
    values = np.repeat(probes(mechanism), 50)
    return np.unique(mechanism.randomize(values, SeededEntropy(SEED)))


def check_private(mechanism) -> None:
    """No input pair and no output loses more than epsilon; a tight worst nearly does.

    What is stated from the integers is what the stated law makes of some output.
    """
    x, outputs = probes(mechanism), some_outputs(mechanism)
    worst = max(mechanism.log_ratio(*pair, outputs).max() for pair in product(x, x))
    assert mechanism.worst_log_ratio() <= mechanism.epsilon
    assert worst == pytest.approx(mechanism.worst_log_ratio(), abs=1e-9)
    if mechanism.tight:
        assert mechanism.worst_log_ratio() >= mechanism.epsilon - 1e-6


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_privacy_loss(name, epsilon):
    """The loss of the integers really used is epsilon, or 1e-6 below it at most."""
    check_private(build(name, epsilon))


def test_halved_sensitivity_is_caught(monkeypatch):
    """A Laplace twin that takes the range of [-1, 1] for 1 fails the privacy check."""
    monkeypatch.setattr(laplace, "RANGE_BITS", laplace.GRID_BITS)
    twin = make("laplace", epsilon=1)
    assert twin.worst_log_ratio() == pytest.approx(2)
    with pytest.raises(AssertionError):
        check_private(twin)


@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
def test_loss_is_that_of_the_law(name, epsilon):
    """The stated log-ratios are those of the jumps of the distribution function."""
    mechanism = build(name, epsilon)
    outputs, inputs = some_outputs(mechanism)[::7], probes(mechanism)[[0, 1, -1]]
    below = outputs - 2**-30  # Between two outputs: no grid is as fine.
    jumps = [mechanism.cdf(x, outputs) - mechanism.cdf(x, below) for x in inputs]
    for (x, jump), (x2, jump2) in product(zip(inputs, jumps, strict=True), repeat=2):
        clear = np.minimum(jump, jump2) > 1e-9
        assert clear.any()
        stated = mechanism.log_ratio(x, x2, outputs)[clear]
        seen = np.log(jump[clear] / jump2[clear])
        assert stated == pytest.approx(seen, abs=1e-5)


@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_mean_and_variance(name, epsilon):
    """Draws have the declared mean and variance; unbiased ones the input's mean."""
    mechanism, n = build(name, epsilon), 40_000
    for x in probes(mechanism):
        draws = mechanism.randomize(np.full(n, x), SeededEntropy(SEED))
        variance = mechanism.variance(x)
        off = 6 * math.sqrt(variance / n)
        assert abs(draws.mean() - mechanism.mean(x)) < off
        fourth = np.mean((draws - draws.mean()) ** 4)
        assert abs(draws.var() - variance) < 6 * math.sqrt(fourth / n)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 10])
def test_bias(name, epsilon):
    """The mean is the input's grid point for every input, or the bias is declared."""
    mechanism = build(name, epsilon)
    x = (
        probes(mechanism)
        if isinstance(mechanism, FiniteMechanism)
        else np.linspace(mechanism.low, mechanism.high, 999)
    )
    assert mechanism.unbiased == (np.abs(mechanism.mean(x) - x) <= 2**-20).all()


@pytest.mark.parametrize("factor", [1, 0.7, 1.3])
def test_sampling_law(name, factor):
    """Draws follow the declared law at the claimed scale, and at no other."""
    mechanism, law = build(name, 1), build(name, factor)
    for x in probes(mechanism)[::2]:
        draws = mechanism.randomize(np.full(200_000, x), SeededEntropy(SEED))
        assert follows(draws, law, x) == (factor == 1)


@pytest.mark.parametrize("epsilon", [0.1, 5, 100])
def test_sampling_law_far_from_1(name, epsilon):
    """The law holds where the grid is fine and where it is coarse for the noise."""
    mechanism = build(name, epsilon)
    for x in probes(mechanism)[[0, -1]]:
        draws = mechanism.randomize(np.full(20_000, x), SeededEntropy(SEED))
        assert follows(draws, mechanism, x)


def test_probabilities_are_a_channel(name):
    """A finite channel's rows are non-negative and sum to 1."""
    mechanism = build(name, 1)
    if isinstance(mechanism, FiniteMechanism):
        rows = mechanism.probabilities(probes(mechanism))
        assert rows.shape[-1] == mechanism.outputs.size
        assert (rows >= 0).all()
        assert np.allclose(rows.sum(axis=-1), 1, rtol=0, atol=1e-15)
        assert (np.diff(mechanism.outputs) > 0).all()


def test_cdf_is_a_distribution_function(name):
    """The declared law rises from 0 to 1, over every real."""
    mechanism = build(name, 1)
    for x in probes(mechanism):
        values = mechanism.cdf(x, np.concatenate([[-1e9], np.linspace(-9, 9), [1e9]]))
        assert values[0] == pytest.approx(0, abs=1e-12)
        assert values[-1] == pytest.approx(1, abs=1e-12)
        assert (np.diff(values) >= 0).all()


def test_law_of_arrays(name):
    """The stated law takes arrays, one entry for each client."""
    mechanism = build(name, 2)
    x = probes(mechanism)
    at = mechanism.randomize(x, SeededEntropy(SEED))
    for law in (mechanism.mean, mechanism.variance):
        assert law(x) == pytest.approx(np.array([law(value) for value in x]))
    single = [mechanism.cdf(*pair) for pair in zip(x, at, strict=True)]
    assert mechanism.cdf(x, at) == pytest.approx(np.array(single))
    grid = mechanism.log_ratio(x[:, None], x[::-1, None], at)
    assert grid.shape == (x.size, at.size)
    assert grid.diagonal() == pytest.approx(mechanism.log_ratio(x, x[::-1], at))


@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_possible_outputs(name, epsilon):
    """What any input gives is possible; what lies beside it or is no number is not."""
    mechanism = build(name, epsilon)
    values = np.repeat(probes(mechanism), 100)
    given = mechanism.randomize(values, SeededEntropy(SEED))
    assert mechanism.possible_mask(given).all()
    assert not mechanism.possible_mask(np.nextafter(given, np.inf)).any()
    assert not mechanism.possible_mask(np.array([np.nan, np.inf, -np.inf, 1e300])).any()


def test_out_of_domain_is_clipped_and_counted(name):
    """Values outside are counted and noised like the end they passed, or refused."""
    mechanism = build(name, 1)
    ends = np.array([mechanism.low, mechanism.high])
    outside = np.array([mechanism.low - 3, mechanism.high + 1e-9])
    if accepted(mechanism, outside):
        clipped, count = mechanism.clip([*outside, mechanism.low])
        assert (clipped == [*ends, mechanism.low]).all()
        assert count == 2
        far, end = (
            mechanism.randomize(x, SeededEntropy(SEED)) for x in (outside, ends)
        )
        assert (far == end).all()


@pytest.mark.parametrize("shape", [(0,), (1,), (5,), (0, 3), (4, 3), (2, 3, 2), ()])
def test_shape(name, shape):
    """The output is float64 of the input's shape, empty ones too."""
    mechanism = build(name, 1)
    values = np.full(shape, probes(mechanism)[0])
    out = mechanism.randomize(values, SeededEntropy(SEED))
    assert out.shape == shape
    assert out.dtype == np.float64


@pytest.mark.parametrize("epsilon", [SMALLEST_EPSILON, 100, 1e4, 1e9, 1e15, 1e300])
def test_extreme_epsilon(name, epsilon):
    """From the smallest epsilon to absurd ones the loss stays below the claim."""
    mechanism = build(name, epsilon)
    assert 0.99 * min(epsilon, 44) <= mechanism.worst_log_ratio() <= epsilon
    values = probes(mechanism)
    out = mechanism.randomize(values, SystemEntropy())
    assert mechanism.possible_mask(out).all()
    assert np.isfinite(mechanism.variance(values)).all()
    if epsilon > 1e9:
        # Two outputs cannot be without noise but at the ends.
        quiet = mechanism.variance(values) < 1e-9
        assert quiet[[0, -1]].all()
        assert out[quiet] == pytest.approx(mechanism.mean(values)[quiet], abs=2**-20)
