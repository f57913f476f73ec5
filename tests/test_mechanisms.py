"""The promises of every mechanism, over the registry, alone and per coordinate."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from curvote.entropy import SeededEntropy, SystemEntropy
from curvote.errors import UserError
from curvote.mechanisms import laplace, make, names, per_coordinate, registry
from curvote.mechanisms.base import SMALLEST_EPSILON, FiniteMechanism, ScalarMechanism
from tests.noise import ALPHA, EPSILONS, SEED, Replay


@pytest.fixture(params=names())
def name(request) -> str:
    """Each mechanism of the registry in turn."""
    return request.param


def accepted(mechanism, x) -> bool:
    """Say whether x is in the mechanism's domain or can be clipped into it."""
    try:
        mechanism.clip(x)
    except UserError:
        return False
    return True


def probes(mechanism) -> np.ndarray:
    """Inputs across the domain, its ends included, that the mechanism accepts."""
    grid = np.linspace(mechanism.low, mechanism.high, 9)
    return np.array([x for x in grid if accepted(mechanism, x)])


def some_outputs(mechanism) -> np.ndarray:
    """All outputs of a finite mechanism, or grid points inside the domain and out."""
    if isinstance(mechanism, FiniteMechanism):
        return mechanism.outputs
    return np.arange(-24, 25) / 8


def check_private(mechanism) -> None:
    """No input pair and no output loses more than epsilon; the worst is nearly it."""
    x, outputs = probes(mechanism), some_outputs(mechanism)
    worst = max(mechanism.log_ratio(*pair, outputs).max() for pair in product(x, x))
    assert mechanism.worst_log_ratio() <= mechanism.epsilon
    assert worst == pytest.approx(mechanism.worst_log_ratio(), abs=1e-9)
    assert mechanism.worst_log_ratio() >= mechanism.epsilon - 1e-6


def follows(draws: np.ndarray, law: ScalarMechanism, x: float) -> bool:
    """Say whether the draws' distribution function is the declared one, at ALPHA.

    The Dvoretzky-Kiefer-Wolfowitz inequality holds for laws with jumps too.
    """
    at, counts = np.unique(draws, return_counts=True)
    reached = np.cumsum(counts) / draws.size
    declared = law.cdf(x, at)
    below = law.cdf(x, np.nextafter(at, -np.inf))
    gap = max(
        np.abs(reached - declared).max(),
        np.abs(reached - counts / draws.size - below).max(),
    )
    return bool(gap <= math.sqrt(math.log(2 / ALPHA) / (2 * draws.size)))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_privacy_loss(name, epsilon):
    """The loss of the integers really used is epsilon, or below it by 1e-6 at most."""
    check_private(make(name, epsilon=epsilon))


def test_halved_sensitivity_is_caught(monkeypatch):
    """A Laplace twin that takes the range of [-1, 1] for 1 fails the privacy check."""
    monkeypatch.setattr(laplace, "RANGE_BITS", laplace.GRID_BITS)
    twin = make("laplace", epsilon=1)
    assert twin.worst_log_ratio() == pytest.approx(2)
    with pytest.raises(AssertionError):
        check_private(twin)


@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_mean_and_variance(name, epsilon):
    """Draws have the declared mean and variance; unbiased ones the input's mean."""
    mechanism, n = make(name, epsilon=epsilon), 40_000
    for x in probes(mechanism):
        draws = mechanism.randomize(np.full(n, x), SeededEntropy(SEED))
        variance = mechanism.variance(x)
        off = 6 * math.sqrt(variance / n)
        assert abs(draws.mean() - mechanism.mean(x)) < off
        fourth = np.mean((draws - draws.mean()) ** 4)
        assert abs(draws.var() - variance) < 6 * math.sqrt(fourth / n)
        if mechanism.unbiased:
            assert mechanism.mean(x) == pytest.approx(x, abs=2**-21)


@pytest.mark.parametrize("factor", [1, 0.7, 1.3])
def test_sampling_law(name, factor):
    """Draws follow the declared law at the claimed scale, and at no other."""
    mechanism = make(name, epsilon=1)
    for x in probes(mechanism):
        draws = mechanism.randomize(np.full(50_000, x), SeededEntropy(SEED))
        law = make(name, epsilon=factor)
        assert follows(draws, law, x) == (factor == 1)


@pytest.mark.parametrize("epsilon", [0.1, 5, 100])
def test_sampling_law_far_from_1(name, epsilon):
    """The law holds where the grid is fine and where it is coarse for the noise."""
    mechanism = make(name, epsilon=epsilon)
    for x in probes(mechanism)[[0, -1]]:
        draws = mechanism.randomize(np.full(20_000, x), SeededEntropy(SEED))
        assert follows(draws, mechanism, x)


def test_probabilities_are_a_channel(name):
    """A finite channel's rows are non-negative and sum to 1."""
    mechanism = make(name, epsilon=1)
    if isinstance(mechanism, FiniteMechanism):
        rows = mechanism.probabilities(probes(mechanism))
        assert rows.shape[-1] == mechanism.outputs.size
        assert (rows >= 0).all()
        assert np.allclose(rows.sum(axis=-1), 1, rtol=0, atol=1e-15)


def test_cdf_is_a_distribution_function(name):
    """The declared law rises from 0 to 1."""
    mechanism = make(name, epsilon=1)
    for x in probes(mechanism):
        values = mechanism.cdf(x, np.concatenate([[-1e9], np.linspace(-9, 9), [1e9]]))
        assert values[0] == pytest.approx(0, abs=1e-12)
        assert values[-1] == pytest.approx(1, abs=1e-12)
        assert (np.diff(values) >= 0).all()


def test_seed_reproduces_and_system_entropy_differs(name):
    """One seed gives one result; operating-system draws do not repeat."""
    mechanism = make(name, epsilon=0.5)
    values = np.resize(probes(mechanism), 1000)
    sources = [SeededEntropy(SEED), SeededEntropy(SEED), SeededEntropy(SEED + 1)]
    first, again, other = (mechanism.randomize(values, source) for source in sources)
    assert (first == again).all()
    assert (first != other).any()
    system = SystemEntropy()
    one, two = (mechanism.randomize(values, system) for _ in range(2))
    assert np.isfinite(one).all()
    assert (one != two).any()


@pytest.mark.parametrize("shape", [(0,), (1,), (5,), (0, 3), (4, 3), (2, 3, 2), ()])
def test_shape(name, shape):
    """The output is float64 of the input's shape, empty ones too."""
    mechanism = make(name, epsilon=1)
    values = np.full(shape, probes(mechanism)[0])
    out = mechanism.randomize(values, SeededEntropy(SEED))
    assert out.shape == shape
    assert out.dtype == np.float64


def test_input_is_left_alone(name):
    """Randomizing does not write into the caller's array."""
    mechanism = make(name, epsilon=1)
    values = np.resize(probes(mechanism), 100)
    before = values.copy()
    mechanism.randomize(values, SeededEntropy(SEED))
    assert (values == before).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_value_draws_nothing(name, bad):
    """NaN or infinity is a UserError before a single word is drawn."""
    values = np.ones(5)
    values[3] = bad
    with pytest.raises(UserError, match="NaN or infinite"):
        make(name, epsilon=1).randomize(values, Replay())


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, -math.inf, 1e-9, 1e-300])
def test_epsilon_out_of_range(name, bad):
    """An epsilon that is no budget, or too small for the integers, is a UserError."""
    with pytest.raises(UserError, match="epsilon"):
        make(name, epsilon=bad)


@pytest.mark.parametrize("epsilon", [SMALLEST_EPSILON, 100, 1e4, 1e9, 1e15, 1e300])
def test_extreme_epsilon(name, epsilon):
    """From the smallest epsilon to absurd ones the loss stays below the claim."""
    mechanism = make(name, epsilon=epsilon)
    assert 0.99 * min(epsilon, 44) <= mechanism.worst_log_ratio() <= epsilon
    values = probes(mechanism)
    out = mechanism.randomize(values, SeededEntropy(SEED))
    assert np.isfinite(out).all()
    if epsilon > 1e9:
        assert out == pytest.approx(values, abs=2**-20)


def test_claims(name):
    """The attributes that a ledger reads are there."""
    mechanism = make(name, epsilon=2)
    assert (mechanism.name, mechanism.epsilon, mechanism.delta) == (name, 2.0, 0.0)


def test_unknown_names_and_parameters():
    """A misspelt mechanism or parameter is a UserError that names the close one."""
    with pytest.raises(UserError, match="Did you mean 'laplace'"):
        make("laplce", epsilon=1)
    with pytest.raises(UserError, match="parameter"):
        make("laplace", epsilon=1, scale=2)
    assert names() == list(registry.MECHANISMS)


@pytest.mark.parametrize(("d", "epsilon"), [*product((1, 3, 7, 10), (0.1, 1, 10))])
def test_per_coordinate_budget(name, d, epsilon):
    """All coordinates together lose at most epsilon, and nearly all of it."""
    mechanism = per_coordinate(name, d, epsilon)
    assert mechanism.epsilon == epsilon
    assert epsilon - 1e-6 <= mechanism.worst_log_ratio() <= epsilon
    low, high = np.full((1, d), mechanism.low), np.full((1, d), mechanism.high)
    loss = mechanism.log_ratio(low, high, low)
    assert loss == pytest.approx([mechanism.worst_log_ratio()], abs=1e-9)


def test_per_coordinate_is_the_scalar_mechanism_flattened(name):
    """A record's coordinates are the scalar mechanism's draws, row by row."""
    vector, scalar = per_coordinate(name, 4, 2), make(name, epsilon=0.5)
    values = np.resize(probes(scalar), (30, 4))
    rows = vector.randomize(values, SeededEntropy(SEED))
    flat = scalar.randomize(values.ravel(), SeededEntropy(SEED))
    assert (rows.ravel() == flat).all()
    assert vector.mean(values) == pytest.approx(scalar.mean(values))
    assert vector.variance(values) == pytest.approx(scalar.variance(values))
    assert vector.unbiased == scalar.unbiased


@pytest.mark.parametrize("shape", [(4,), (4, 2), (2, 3, 1), ()])
def test_per_coordinate_shape(name, shape):
    """Anything but (n, d) is a UserError that draws nothing."""
    with pytest.raises(UserError, match=r"\(n, 3\)"):
        per_coordinate(name, 3, 1).randomize(np.ones(shape), Replay())


@pytest.mark.parametrize(("d", "epsilon"), [(0, 1), (2, 0), (2, math.nan), (9, 1e-6)])
def test_per_coordinate_refuses(name, d, epsilon):
    """No coordinates, no budget, or too little of it for each: UserError."""
    with pytest.raises(UserError):
        per_coordinate(name, d, epsilon)
