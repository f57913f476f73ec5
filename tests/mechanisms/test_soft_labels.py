"""Decoded soft labels of ALIBI: no bias, and their variances, exactly and by draws."""

from itertools import product

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.mechanisms import make
from curvote.mechanisms.alibi import ONE_HOT_STEPS, Alibi, soft_label_moments
from tests.noise import SEED

SMALLEST = 2.0**-20


def summed(law: Alibi, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all rows of numbers cut to [0, 1], and how likely label 0 makes each."""
    within = np.arange(ONE_HOT_STEPS)
    own = np.diff(law.noise.cdf(within - ONE_HOT_STEPS), prepend=0, append=1)
    other = np.diff(law.noise.cdf(within), prepend=0, append=1)
    rows = np.array(list(product(range(ONE_HOT_STEPS + 1), repeat=n_classes)))
    chances = own[rows[:, 0]] * other[rows[:, 1:]].prod(axis=1)
    return rows, chances


@pytest.mark.parametrize("epsilon", [SMALLEST, 0.01, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_law_by_summation(epsilon, n_classes):
    """Mean, variance and that of a difference, over everything that can be drawn."""
    law = make("alibi", epsilon=epsilon, n_classes=n_classes)
    rows, chances = summed(law, n_classes)
    decoded = law.decode(rows)
    # Chances are known to 2^-53 only, and decoded labels are as large as 4/epsilon.
    exact = {"rel": 1e-6, "abs": 1e-9 / epsilon}
    assert chances @ decoded == pytest.approx(law.mean([0])[0], **exact)
    off = decoded - law.mean([0])
    assert chances @ off**2 == pytest.approx(law.variance([0])[0], **exact)
    gap = off[:, 0] - off[:, 1]
    assert chances @ gap**2 == pytest.approx(law.pair_variance(), **exact)


@pytest.mark.parametrize(
    ("n_classes", "epsilon"),
    [(2, 0.5), (7, 2.0), (40, 8.0), (1000, SMALLEST), (1000, 1.0), (1000, 20.0)],
)
def test_law_of_draws(n_classes, epsilon):
    """Every number has the declared mean and variance, and rows sum to 1."""
    law, n = make("alibi", epsilon=epsilon, n_classes=n_classes), 4_000_000
    n //= max(n_classes, 100)
    rows = law.decode(law.randomize(np.full(n, 1), SeededEntropy(SEED)))
    assert rows.sum(axis=1) == pytest.approx(np.ones(n), abs=1e-7 / epsilon)
    off, variance = rows - law.mean([1]), law.variance([1])[0]
    assert (np.abs(off.mean(axis=0)) <= 6 * np.sqrt(variance / n)).all()
    own, other, gap = off[:, 1], np.delete(off, 1, axis=1), off[:, 1] - off[:, 0]
    for drawn, declared in (
        (own**2, variance[1]),
        ((other**2).mean(axis=1), variance[0]),
        (gap**2, law.pair_variance()),
    ):
        assert abs(drawn.mean() - declared) <= 6 * drawn.std() / np.sqrt(n)


def test_another_epsilon_is_biased():
    """Soft labels of twice the epsilon, decoded as if of this one, are too large."""
    law = make("alibi", epsilon=1, n_classes=7)
    secret = make("alibi", epsilon=2, n_classes=7)
    rows = law.decode(secret.randomize(np.zeros(40_000), SeededEntropy(SEED)))
    off = np.abs(rows.mean(axis=0) - law.mean([0])[0])
    assert off[0] > 10 * np.sqrt(law.variance([0])[0, 0] / 40_000)


@pytest.mark.parametrize("epsilon", [SMALLEST, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("n_classes", [2, 3, 16, 100, 1000])
def test_soft_labels_tell_more_than_the_noised_label(n_classes, epsilon):
    """Noise far outside of [0, 1] is cut: twice the signal at small epsilon."""
    law = make("alibi", epsilon=epsilon, n_classes=n_classes)
    gain = 2 * law.noise.variance / ONE_HOT_STEPS**2 / law.pair_variance()
    assert 1.0 < gain <= 2.001
    if epsilon == SMALLEST:
        assert gain == pytest.approx(2, rel=1e-4)


def test_posterior_identity():
    """The gap is K/2 times the mean squared difference, K = 2: by the variance."""
    for epsilon in (SMALLEST, 1e-3, 1.0, 10.0):
        rate = make("alibi", epsilon=epsilon, n_classes=2).noise.rate
        known = soft_label_moments(rate, ONE_HOT_STEPS, 2)
        assert known.pair + known.gap**2 == pytest.approx(known.gap, rel=1e-12)
        assert known.label_variance == pytest.approx(known.pair / 4, rel=1e-9)
        assert known.other_variance == pytest.approx(known.label_variance, rel=1e-9)


def test_variance_of_every_epsilon_and_k():
    """Above 0 and finite; it falls by epsilon^-2 at small epsilon, for whatever K."""
    powers = np.arange(-20, 12, 0.5)
    for n_classes in (2, 3, 10, 1000, 100_000):
        found = np.array(
            [
                make("alibi", epsilon=2.0**power, n_classes=n_classes).pair_variance()
                for power in powers
            ]
        )
        assert (found > 0).all()
        assert np.isfinite(found).all()
        assert found[:19] / found[1:20] == pytest.approx(np.full(19, 2), rel=0.01)
