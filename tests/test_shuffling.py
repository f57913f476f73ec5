"""What shuffling hides: true bounds, checked against laws that can be written out."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from curvote.base import accounting
from curvote.base.accounting import shuffled_epsilon
from curvote.base.errors import UserError


def test_ten_thousand_messages_hide_each_other() -> None:
    """At epsilon 1 and delta 1e-6: at most 0.22, and the better bound far below."""
    assert accounting.closed_form_bound(1, 10_000, 1e-6) == pytest.approx(
        0.2140, abs=1e-4
    )
    assert shuffled_epsilon(1, 10_000, 1e-6) < 0.06


def test_the_numerical_bound_is_at_or_below_the_closed_form() -> None:
    """In 200 random settings, all where the closed form applies."""
    rng, checked = np.random.default_rng(5), 0
    while checked < 200:
        n, delta = int(10 ** rng.uniform(2, 8)), float(10 ** rng.uniform(-12, -1))
        most = math.log(n / (16 * math.log(2 / delta)))
        if most <= 0.01:
            continue
        epsilon = float(rng.uniform(0.01, most))
        closed = accounting.closed_form_bound(epsilon, n, delta)
        assert accounting.numerical_bound(epsilon, n, delta) <= closed
        checked += 1


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0, 700.0])
@pytest.mark.parametrize("delta", [1e-10, 0.3])
def test_it_is_never_above_the_local_one_and_falls_with_n(
    epsilon: float, delta: float
) -> None:
    """For each n to 30, then for neighbours at every size up to 10^15."""
    sizes = [*range(1, 31)]
    sizes += [10**k + more for k in range(2, 16) for more in (0, 1)]
    found = np.array([shuffled_epsilon(epsilon, n, delta) for n in sizes])
    assert found.max() <= epsilon
    assert found.min() >= 0
    assert (np.diff(found) <= 0).all()
    if epsilon == 1:
        assert found[-1] < 1e-4


def _exact(epsilon: float, n: int, ones: int, at: float) -> float:
    """Return the delta at ``at`` of n shuffled randomized bits, all but one fixed.

    ``ones`` of the others have the bit 1; what is seen is the number of ones.
    """
    keep = 1 / (1 + math.exp(-epsilon))
    others = np.convolve(
        binom.pmf(np.arange(ones + 1), ones, keep),
        binom.pmf(np.arange(n - ones), n - 1 - ones, 1 - keep),
    )
    law = np.convolve(others, [1 - keep, keep]), np.convolve(others, [keep, 1 - keep])
    both = (np.maximum(p - math.exp(at) * q, 0).sum() for p, q in (law, law[::-1]))
    return float(max(both))


def _least(epsilon: float, n: int, delta: float) -> float:
    """Return the exact epsilon' of shuffled randomized bits, the worst of some."""
    low, high = 0.0, epsilon
    for _ in range(22):
        middle = (low + high) / 2
        worst = max(_exact(epsilon, n, k, middle) for k in {0, (n - 1) // 2, n - 1})
        low, high = (low, middle) if worst <= delta else (middle, high)
    return high


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("n", [1, 2, 60, 500, 2000])
@pytest.mark.parametrize("delta", [1e-6, 1e-3])
def test_it_bounds_randomized_bits_and_is_near(
    epsilon: float, n: int, delta: float
) -> None:
    """Never below what enumeration says of randomized bits; near where many hide."""
    told, exact = shuffled_epsilon(epsilon, n, delta), _least(epsilon, n, delta)
    assert exact * (1 - 1e-6) <= told
    most = 2.5 if n * math.exp(-epsilon) > 90 else 3
    assert told <= most * exact + 1e-6


def _theorem(p: Fraction, n: int, most: Fraction) -> Fraction:
    """Return the largest P(S) - most Q(S) of theorem 3.2, in fractions."""
    share, keep = 1 / p, p / (p + 1)
    delta = Fraction(0)
    for c in range(n):
        few = math.comb(n - 1, c) * share**c * (1 - share) ** (n - 1 - c)
        for k in range(c + 2):
            first = Fraction(math.comb(c, k - 1) if k else 0, 2**c)
            second = Fraction(math.comb(c, k) if k <= c else 0, 2**c)
            one = keep * first + (1 - keep) * second
            other = (1 - keep) * first + keep * second
            delta += few * max(one - most * other, Fraction(0))
    return delta


@pytest.mark.parametrize("n", [1, 2, 5, 23, 40])
@pytest.mark.parametrize("at", [0.0, 0.3, 0.9])
def test_the_clones_are_counted_upwards_to_nine_digits(n: int, at: float) -> None:
    """Beside the theorem's sum in exact fractions."""
    truth = float(_theorem(Fraction(math.e), n, Fraction(math.exp(at))))
    found = accounting._Clones.of(1.0, n, 1e-6).delta(at)
    assert truth * (1 - 1e-12) <= found <= truth * (1 + 1e-6)


@pytest.mark.parametrize("clones", [10**3, 10**6, 10**9])
def test_large_numbers_of_clones_keep_their_digits(clones: int) -> None:
    """Beside plain sums of logarithms around the middle, where all the weight is."""
    local, epsilon = 1.0, 3.0 / math.sqrt(clones)
    keep = 1 / (1 + math.exp(-local))
    reach = min(30 * math.isqrt(clones), clones)
    k = np.arange(clones // 2 - reach // 2, clones // 2 + reach // 2)
    # (k + 1)/(clones - k): the ratio of neighbours, so that no digit is lost.
    logs = np.concatenate([[0], np.cumsum(np.log((clones - k[:-1]) / (k[:-1] + 1)))])
    law = np.exp(logs - logs.max())
    law /= law.sum()
    one = np.convolve(law, [1 - keep, keep])
    other = np.convolve(law, [keep, 1 - keep])
    truth = np.maximum(one - math.exp(epsilon) * other, 0).sum()
    found = accounting._divergence(np.array([clones]), local, epsilon)[0]
    assert found == pytest.approx(truth, rel=1e-5)


@pytest.mark.parametrize(
    ("epsilon", "n", "delta", "said"),
    [
        (0, 10, 0.1, "epsilon is 0"),
        (math.nan, 10, 0.1, "epsilon is nan"),
        (math.inf, 10, 0.1, "epsilon is inf"),
        (1, 0, 0.1, "n is 0"),
        (1, 2.5, 0.1, r"n is 2\.5"),
        (1, math.inf, 0.1, "n is inf"),
        (1, 10, 0, "delta is 0"),
        (1, 10, 1, "delta is 1"),
        (1, 10, math.nan, "delta is nan"),
    ],
)
def test_what_cannot_be_asked(epsilon: float, n: int, delta: float, said: str) -> None:
    """A UserError that names the argument."""
    with pytest.raises(UserError, match=said):
        shuffled_epsilon(epsilon, n, delta)
