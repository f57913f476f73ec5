"""The sum of many Laplace noises, drawn at once by its own law."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.mechanisms.base import SMALLEST_EPSILON
from curvote.mechanisms.exact import DiscreteLaplace
from curvote.mechanisms.laplace import Laplace, draw_noise_sums
from tests.noise import ALPHA, SEED

SIZE = 20_000
# From a rate of 1, where single steps show, to that of the mechanism at epsilon 0.1.
LAWS = [DiscreteLaplace(64, 6), *(Laplace(epsilon=e).noise for e in (1000, 1, 0.1))]


def one_by_one(n: int, noise: DiscreteLaplace) -> NDArray[np.int64]:
    """Return sums of n draws of the sampler that protects clients."""
    return noise.sample(n * SIZE, SeededEntropy(SEED)).reshape(SIZE, n).sum(axis=1)


def rng() -> np.random.Generator:
    """Return a generator of its own: no draw is shared with the other sample."""
    return np.random.default_rng([SEED, 1])


def rescaled(noise: DiscreteLaplace, factor: float) -> DiscreteLaplace:
    """Return the same law at another scale."""
    return DiscreteLaplace(round(noise.s / factor), noise.bits)


@pytest.mark.parametrize("noise", LAWS)
@pytest.mark.parametrize("n", [1, 2, 40])
def test_the_sum_follows_the_law_of_summed_draws(n: int, noise: DiscreteLaplace):
    """Two samples cannot be told apart; at 0.7 or 1.3 times the scale they can."""
    real = one_by_one(n, noise)
    for factor, alike in ((1.0, True), (0.7, False), (1.3, False)):
        drawn = draw_noise_sums(n, rescaled(noise, factor), SIZE, rng())
        found = stats.ks_2samp(real, drawn, method="asymp").pvalue
        assert (found > ALPHA) == alike


@pytest.mark.parametrize("n", [1, 5])
def test_the_sum_has_the_convolved_law(n: int):
    """Where steps are coarse, each value has the probability of the n-fold sum."""
    noise, k = LAWS[0], np.arange(-60, 61)
    one = np.tanh(noise.rate / 2) * np.exp(-noise.rate * np.abs(k))
    law = one
    for _ in range(n - 1):
        law = np.convolve(law, one, mode="same")
    drawn = draw_noise_sums(n, noise, SIZE, rng())
    counts = np.array([(drawn == value).sum() for value in k])
    likely = law * SIZE > 20
    rest = SIZE - counts[likely].sum(), SIZE * (1 - law[likely].sum())
    observed, expected = [*counts[likely], rest[0]], [*law[likely] * SIZE, rest[1]]
    chi2 = np.sum((np.array(observed) - expected) ** 2 / np.array(expected))
    assert stats.chi2.sf(chi2, int(likely.sum())) > ALPHA


@pytest.mark.parametrize("epsilon", [SMALLEST_EPSILON, 1e-4, 0.1, 10, 1000, 1e5])
@pytest.mark.parametrize("n", [1, 2214, 10**6])
def test_mean_and_variance_hold_from_tiny_to_huge(n: int, epsilon: float):
    """Neither tiny success probabilities nor huge counts bend the first two moments."""
    noise = Laplace(epsilon=epsilon).noise
    drawn = draw_noise_sums(n, noise, SIZE, rng()).astype(float)
    variance = n * noise.variance
    assert abs(drawn.mean()) < 5 * np.sqrt(variance / SIZE)
    # The excess kurtosis of a Laplace law is 3, of a sum of n of them 3/n.
    spread = np.sqrt((2 + 3 / n) / SIZE)
    assert drawn.var() / variance == pytest.approx(1, abs=5 * spread)


def test_noise_that_is_always_zero_sums_to_zero():
    """At an epsilon beyond every scale the sum is exactly 0."""
    assert not draw_noise_sums(100, Laplace(epsilon=1e300).noise, SIZE, rng()).any()


def test_sums_beyond_64_bits_are_refused():
    """A sum that might overflow is an error that names n, never a wrong number."""
    with pytest.raises(UserError, match=r"n is 10000000.*may not fit 64 bits"):
        draw_noise_sums(10**7, Laplace(epsilon=SMALLEST_EPSILON).noise, 1, rng())
    with pytest.raises(UserError, match="n is 0"):
        draw_noise_sums(0, LAWS[0], 1, rng())
