"""The promises of every vector mechanism, over the registry."""

import math
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.mechanisms import coordinates, gaussian
from curvote.mechanisms.base import SMALLEST_EPSILON, VectorMechanism
from curvote.mechanisms.coordinates import per_coordinate
from curvote.mechanisms.privunit import PrivUnit
from tests.noise import EPSILONS, SEED, Replay, build, names_of

D = 3
# Two opposite corners, a third one, and records inside.
RECORDS = np.array(
    [[1, 1, 1], [-1, -1, -1], [1, -1, 1], [0.5, -0.75, 0.125], [0.25, 0.25, 0.25]]
)


@pytest.fixture(params=names_of(VectorMechanism))
def name(request) -> str:
    """Each vector mechanism of the registry in turn."""
    return request.param


def records(mechanism: VectorMechanism) -> np.ndarray:
    """Return the records; in blocks of their own where a mechanism takes more numbers.

    So that they are of different classes where blocks are classes.
    """
    return np.array([wide(mechanism, row, D * i) for i, row in enumerate(RECORDS)])


def wide(mechanism: VectorMechanism, values: np.ndarray, at: int = 0) -> np.ndarray:
    """Return numbers (..., D) from place ``at`` on of as many as a mechanism takes."""
    rest = np.zeros((*np.shape(values)[:-1], mechanism.d - D))
    return np.roll(np.concatenate([values, rest], axis=-1), at, axis=-1)


def rows(record: np.ndarray, n: int) -> np.ndarray:
    """Return the same record n times."""
    return np.tile(record, (n, 1))


def gaussian_delta(mechanism: VectorMechanism, epsilon: float) -> float:
    """Return the delta of a Gaussian loss between opposite corners (Balle & Wang)."""
    high, low = records(mechanism)[[[0], [1]]]
    ratio = math.sqrt(2 * mechanism.log_ratio(high, low, high)[0])
    above, below = ratio / 2 - epsilon / ratio, -ratio / 2 - epsilon / ratio
    return stats.norm.cdf(above) - math.exp(epsilon) * stats.norm.cdf(below)


def check_gaussian(mechanism: VectorMechanism) -> None:
    """At the stated loss delta is the claimed one, or below it by 1e-5 at most."""
    delta = gaussian_delta(mechanism, mechanism.worst_log_ratio())
    assert mechanism.delta * (1 - 1e-5) <= delta <= mechanism.delta * (1 + 1e-9)


def check_worst(mechanism: VectorMechanism) -> None:
    """The worst of the losses at real draws is the stated one."""
    worst = -math.inf
    for x, x2 in permutations(records(mechanism), 2):
        at = mechanism.randomize(rows(x, 200), SeededEntropy(SEED))
        worst = max(worst, mechanism.log_ratio(rows(x, 200), rows(x2, 200), at).max())
    assert worst == pytest.approx(mechanism.worst_log_ratio(), abs=1e-7)


def check_private(mechanism: VectorMechanism) -> None:
    """No two records lose more than epsilon (at delta); the worst ones nearly do."""
    assert mechanism.worst_log_ratio() <= mechanism.epsilon
    if mechanism.tight:
        assert mechanism.worst_log_ratio() >= mechanism.epsilon * (1 - 1e-6) - 1e-9
    (check_gaussian if mechanism.delta else check_worst)(mechanism)


def check_moments(mechanism: VectorMechanism, n: int = 20_000) -> None:
    """Draws have the declared mean and variance; unbiased ones the record's mean."""
    for record in records(mechanism):
        draws, one = (
            mechanism.randomize(rows(record, n), SeededEntropy(SEED)),
            record[None],
        )
        mean, variance = mechanism.mean(one)[0], mechanism.variance(one)[0]
        assert (np.abs(draws.mean(axis=0) - mean) <= 6 * np.sqrt(variance / n)).all()
        spread = np.std((draws - mean) ** 2, axis=0) / math.sqrt(n)
        centred = np.mean((draws - mean) ** 2, axis=0)
        assert (np.abs(centred - variance) <= 6 * spread + 1e-12).all()
        if mechanism.unbiased:
            assert mean == pytest.approx(mechanism.clip(one)[0][0], abs=2**-21)


def follows(draws: np.ndarray, law: VectorMechanism, x: np.ndarray) -> bool:
    """Say whether draws for x can be the law's: E[P(. | x2) / P(. | x)] = 1."""
    if not law.possible_mask(draws).all():
        return False
    for x2 in records(law):
        loss = law.log_ratio(rows(x, len(draws)), rows(x2, len(draws)), draws)
        ratio = np.exp(-loss)
        if abs(ratio.mean() - 1) > 6 * ratio.std() / math.sqrt(len(draws)) + 1e-12:
            return False
    return True


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_privacy_loss(name, epsilon):
    """The loss of the integers really used is epsilon, or below it by 1e-6 at most."""
    check_private(build(name, epsilon))


def test_a_budget_that_is_not_split_is_caught(monkeypatch):
    """A twin of `sampled` that spends all of epsilon on each coordinate is refused."""

    def whole(name: str, k: int, epsilon: float) -> object:
        return per_coordinate(name, k, k * epsilon)

    monkeypatch.setattr(coordinates, "per_coordinate", whole)
    twin = build("sampled", 5)
    assert twin.worst_log_ratio() == pytest.approx(10)
    with pytest.raises(AssertionError):
        check_private(twin)


def test_half_the_sensitivity_is_caught(monkeypatch):
    """A Gaussian twin that takes sqrt(d) for the diameter is refused."""
    real = gaussian.box_diameter
    monkeypatch.setattr(gaussian, "box_diameter", lambda d: real(d) / 2)
    twin = build("gaussian", 1)
    with pytest.raises(AssertionError):
        check_private(twin)


def test_a_shifted_cap_is_caught(monkeypatch):
    """A PrivUnit twin whose cap is smaller than its constants say is refused."""
    check_moments(twin := build("privunit", 1))
    real = PrivUnit._accept

    def shifted(self, candidates, u, words):
        return real(self, candidates, 0.6 * u, words)

    monkeypatch.setattr(PrivUnit, "_accept", shifted)
    with pytest.raises(AssertionError):
        check_moments(twin)


@pytest.mark.parametrize("epsilon", [0.5, 5])
def test_mean_and_variance(name, epsilon):
    """Draws have the declared mean and variance; unbiased ones the record's mean."""
    check_moments(build(name, epsilon))


@pytest.mark.parametrize("factor", [1, 0.7, 1.3])
def test_sampling_law(name, factor):
    """Draws follow the declared law at the claimed scale, and at no other."""
    mechanism, law = build(name, 1), build(name, factor)
    for x in records(mechanism)[:2]:
        draws = mechanism.randomize(rows(x, 20_000), SeededEntropy(SEED))
        assert follows(draws, law, x) == (factor == 1)


def test_possible(name):
    """Every draw is a possible output; what is a little beside draws is not."""
    mechanism = build(name, 2)
    given = np.tile(records(mechanism), (40, 1))
    draws = mechanism.randomize(given, SeededEntropy(SEED))
    assert mechanism.possible_mask(draws).shape == (len(draws),)
    assert mechanism.possible_mask(draws).all()
    wrong = draws.copy()
    wrong[:, 0] += 2.0**-22
    assert not mechanism.possible_mask(wrong).all()
    assert not mechanism.possible_mask(np.full((1, mechanism.d), np.nan)).any()


@pytest.mark.parametrize("n", [0, 1, 5])
def test_shape(name, n):
    """The output is float64 of the records' shape, also without a record."""
    mechanism = build(name, 1)
    given = np.ones((n, mechanism.d))
    out = mechanism.randomize(given, SeededEntropy(SEED))
    assert out.shape == mechanism.mean(given).shape == given.shape
    assert out.dtype == np.float64


def test_out_of_domain_is_clipped_and_counted(name):
    """What is out of the domain is moved into it, counted, and noised like that."""
    mechanism = build(name, 1)
    values = wide(mechanism, np.array([[3, 0, 0], [1, 0, 0], [0, -7, 0.5]]))
    clipped, count = mechanism.clip(values)
    assert count == 2
    assert mechanism.clip(clipped)[1] == 0
    far, near = (mechanism.randomize(x, SeededEntropy(SEED)) for x in (values, clipped))
    assert (far == near).all()


@pytest.mark.parametrize("shape", [(), (3,), (4, 2), (2, 3, 1)])
def test_wrong_shape_draws_nothing(name, shape):
    """Anything but (n, d) is a UserError before a single word is drawn."""
    mechanism = build(name, 1)
    with pytest.raises(UserError, match=rf"\(n, {mechanism.d}\)"):
        mechanism.randomize(np.ones(shape), Replay())


@pytest.mark.parametrize("epsilon", [SMALLEST_EPSILON, 100, 1e4, 1e9, 1e300])
def test_extreme_epsilon(name, epsilon):
    """From the smallest epsilon to absurd ones the loss stays below the claim."""
    mechanism = build(name, epsilon)
    # A Gaussian's is the root of an equation, found to 1e-14.
    assert 0.99 * min(epsilon, 44) <= mechanism.worst_log_ratio() <= epsilon + 1e-14
    given = records(mechanism)
    assert np.isfinite(mechanism.randomize(given, SeededEntropy(SEED))).all()
    assert np.isfinite(mechanism.variance(given)).all()


@pytest.mark.parametrize("d", [2, 10, 130])
def test_any_number_of_coordinates(name, d):
    """Few and many coordinates, also more than a word has bits, are drawn alike."""
    mechanism = build(name, 1, d=d)
    given = np.full((4, mechanism.d), 0.5)
    draws = mechanism.randomize(given, SeededEntropy(SEED))
    assert draws.shape == given.shape
    assert mechanism.possible_mask(draws).all()
    assert 1 - 1e-6 <= mechanism.worst_log_ratio() <= 1
