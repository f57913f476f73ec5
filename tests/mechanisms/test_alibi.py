"""ALIBI: exact Laplace noise on the one-hot label, and the soft labels of (29)."""

import math
from itertools import product

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy, SystemEntropy
from curvote.base.errors import UserError
from curvote.mechanisms import exact, make
from curvote.mechanisms.alibi import ONE_HOT_STEPS, Alibi
from tests.noise import ALPHA, EPSILONS, SEED, Replay


def follows(draws: np.ndarray, law: Alibi, label: int) -> bool:
    """Say whether every number has the declared law, at ALPHA, by its distribution."""
    allowed = math.sqrt(math.log(2 * law.n_classes / ALPHA) / (2 * len(draws)))
    for place, column in enumerate(draws.T):
        at, counts = np.unique(column, return_counts=True)
        reached = np.cumsum(counts) / counts.sum()
        rows = np.repeat(at[:, None], law.n_classes, axis=1)
        declared = law.cdf(np.full(at.size, label), rows)[:, place]
        if np.abs(reached - declared).max() > allowed:
            return False
    return True


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_loss_counts_both_numbers(epsilon):
    """Two labels differ by 1 in two numbers: the worst output loses all of epsilon."""
    law = make("alibi", epsilon=epsilon, n_classes=5)
    assert epsilon - 1e-6 <= law.worst_log_ratio() <= epsilon
    assert law.worst_ratio() is None
    span = np.arange(-law.limit, law.limit + 1, max(1, law.limit // 40))
    pairs = np.array(list(product(span, span)))
    rows = np.hstack([pairs, np.zeros((len(pairs), 3), dtype=int)])
    zeros = np.zeros(len(rows))
    loss = law.log_ratio(zeros, zeros + 1, rows)
    away = np.abs(rows[:, 0]) - np.abs(rows[:, 0] - ONE_HOT_STEPS)
    away -= np.abs(rows[:, 1]) - np.abs(rows[:, 1] - ONE_HOT_STEPS)
    assert loss == pytest.approx(away * law.noise.rate, abs=1e-9)
    assert np.abs(loss).max() == pytest.approx(law.worst_log_ratio(), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_sampling_law(epsilon, n_classes):
    """Every number has the Laplace law of scale 2/epsilon on the grid."""
    law = make("alibi", epsilon=epsilon, n_classes=n_classes)
    for label in range(n_classes):
        draws = law.randomize(np.full(20_000, label), SeededEntropy(SEED))
        assert follows(draws, law, label)
    assert law.noise.rate * ONE_HOT_STEPS == pytest.approx(epsilon / 2, abs=1e-6)


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_sampling_law_of_another_epsilon(factor):
    """Draws do not have the law of a smaller or a larger epsilon."""
    draws = make("alibi", epsilon=1, n_classes=3).randomize(
        np.zeros(50_000), SeededEntropy(SEED)
    )
    assert not follows(draws, make("alibi", epsilon=factor, n_classes=3), 0)


def test_many_chunks(monkeypatch):
    """The law is the same where a batch is worked off in many pieces."""
    monkeypatch.setattr(exact, "_BITS_AT_ONCE", 700)
    law = make("alibi", epsilon=1, n_classes=3)
    draws = law.randomize(np.full(20_000, 2), SeededEntropy(SEED))
    assert follows(draws, law, 2)
    rows = draws[:500]
    assert law.likelihood(rows)[[3]] == pytest.approx(law.likelihood(rows[[3]]))


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 30.0])
def test_soft_labels_are_those_of_29(epsilon):
    """Softmax of f(o_c)/lambda with f(o_c) = -sum_k |o_k - [c = k]|, in O(K)."""
    law = make("alibi", epsilon=epsilon, n_classes=6)
    rows = law.randomize(np.arange(600) % 6, SeededEntropy(SEED))
    noised = rows / ONE_HOT_STEPS
    distance = np.abs(noised[:, None] - np.eye(6)).sum(axis=2) * epsilon / 2
    weights = np.exp(distance.min(axis=1, keepdims=True) - distance)
    soft = law.soft(rows)
    rows_sum = weights.sum(axis=1, keepdims=True)
    assert soft == pytest.approx(weights / rows_sum, rel=1e-6)
    assert soft.sum(axis=1) == pytest.approx(np.ones(600))
    assert law.likelihood(rows) == pytest.approx(weights, rel=1e-6)
    assert (law.likelihood(rows).max(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("epsilon", "dtype"), [(0.5, np.int16), (0.01, np.int32), (2.0**-20, np.int64)]
)
def test_numbers_are_small(epsilon, dtype):
    """The smallest type that holds what 64 bits of chance can reach."""
    law = make("alibi", epsilon=epsilon, n_classes=4)
    out = law.randomize([3, 0], SystemEntropy())
    assert (out.dtype, out.shape) == (np.dtype(dtype), (2, 4))
    assert law.limit <= np.iinfo(dtype).max
    assert law.possible_mask(out).all()
    assert (
        2.0**-66 < (1 - law.noise.cdf(law.limit - ONE_HOT_STEPS)) + 2.0**-65 < 2.0**-60
    )


def test_possible():
    """Only rows of steps within the cut; no fraction, no other width."""
    law = make("alibi", epsilon=1, n_classes=3)
    rows = np.array([[0, 0, law.limit], [0, -law.limit - 1, 0], [0, 0, 0]])
    assert law.possible_mask(rows).tolist() == [True, False, True]
    assert not law.possible_mask(np.zeros((3, 2), dtype=np.int16)).any()
    assert not law.possible_mask(np.zeros(3, dtype=np.int16)).any()
    assert not law.possible_mask(np.zeros((3, 3))).any()


def test_tail():
    """An honest number is larger than the tail as often as was asked, at most."""
    law = make("alibi", epsilon=1, n_classes=2)
    draws = np.abs(law.randomize(np.zeros(100_000), SeededEntropy(SEED)))
    for probability in (0.1, 0.01):
        assert (draws > law.tail_bound(probability)).mean(axis=0).max() <= probability
    assert law.tail_bound(1e-300) == law.limit


@pytest.mark.parametrize("epsilon", [2.0**-20, 100, 1e4, 1e300])
def test_extreme_epsilon(epsilon):
    """From the smallest epsilon to absurd ones the loss stays below the claim."""
    law = make("alibi", epsilon=epsilon, n_classes=5)
    assert 0.99 * min(epsilon, 2**29) <= law.worst_log_ratio() <= epsilon
    out = law.randomize(np.arange(5), SystemEntropy())
    assert law.possible_mask(out).all()
    found = (law.decode(out), law.likelihood(out), law.variance(np.arange(5)))
    assert all(np.isfinite(one).all() for one in found)
    assert np.isfinite(1 / law.pair_variance())
    if epsilon >= 1e4:
        assert law.decode(out) == pytest.approx(np.eye(5), abs=1e-15)


def test_refusals():
    """No label: no word is drawn; outputs and channel are never written out."""
    law = make("alibi", epsilon=1, n_classes=5)
    for bad in ([0, 5], [0.5], [np.nan], [[1]]):
        with pytest.raises(UserError, match="values"):
            law.randomize(bad, Replay())
    for written in (law.outputs, law.channel, lambda: law.probabilities([0])):
        with pytest.raises(UserError, match="4096"):
            written()
    with pytest.raises(UserError, match="n_classes"):
        make("alibi", epsilon=1, n_classes=1)
    assert law.randomize([], Replay()).shape == (0, 5)
