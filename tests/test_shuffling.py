"""What shuffling hides: true bounds, checked against laws that can be written out."""

import math
from fractions import Fraction
from itertools import combinations, pairwise, permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, norm

from curvote.base import accounting
from curvote.base.accounting import shuffled_epsilon
from curvote.base.blanket import Blanket
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.mechanisms.frequency_oracles import (
    Hadamard,
    SubsetSelection,
    UnarySymmetric,
)
from curvote.mechanisms.gaussian import Gaussian
from curvote.mechanisms.privunit import PrivUnit
from curvote.mechanisms.randomized_response import KRR
from curvote.messages.amplification import ShuffledGuarantee

Array = NDArray[np.float64]


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
    assert told <= (1.4 if n * math.exp(-epsilon) > 90 else 3) * exact + 1e-6


def _theorem(p: Fraction, n: int, most: Fraction) -> Fraction:
    """Return the largest P(S) - most Q(S) of the clones, in fractions."""
    share, keep = 2 / (p + 1), p / (p + 1)
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
    share = 2 / (math.e + 1)
    found = accounting._Clones.of(1.0, n, 1e-6, share).delta(at)
    assert truth * (1 - 1e-12) <= found <= truth * (1 + 1e-6)


def _codes(mechanism: Any, others: list[int]) -> list[Array]:
    """Return the laws of the counts of codes with label 0, and 1, beside others."""
    chances = [mechanism.probabilities([label])[0] for label in range(3)]
    size = sum(others) + 2
    turn = np.exp(-2j * np.pi / size * np.arange(size))
    point = [c[0] * turn[:, None] + c[1] * turn[None, :] + c[2] for c in chances]
    rest = math.prod(p**k for p, k in zip(point, others, strict=True))
    return [np.fft.ifft2(rest * point[label]).real for label in (0, 1)]


def _least_of_codes(mechanism: Any, n: int, delta: float) -> float:
    """Return the exact epsilon' of n shuffled codes of three, the worst of some."""
    cases = {(n - 1, 0, 0), (0, 0, n - 1), (n // 2, n - 1 - n // 2, 0)}
    pairs = [_codes(mechanism, list(case)) for case in cases]
    low, high = 0.0, mechanism.epsilon
    for _ in range(22):
        middle = (low + high) / 2
        tops = (np.maximum(p - math.exp(middle) * q, 0).sum() for p, q in pairs)
        low, high = (low, middle) if max(tops) <= delta else (middle, high)
    return high


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("n", [2, 40, 300])
def test_a_blanket_bounds_codes_of_three_and_is_near(epsilon: float, n: int) -> None:
    """Never below enumeration, below what holds for all; a false blanket is caught."""
    mechanism, delta = KRR(epsilon=epsilon, n_classes=3), 1e-4
    exact = _least_of_codes(mechanism, n, delta)
    told = shuffled_epsilon(epsilon, n, delta, mechanism.blanket())
    assert exact * (1 - 1e-6) <= told <= shuffled_epsilon(epsilon, n, delta)
    if n == 300:
        assert told <= 1.25 * exact
        twin = Blanket.two_levels(epsilon, 1 / 9)
        assert shuffled_epsilon(epsilon, n, delta, twin) < exact


def _lemma(blanket: Blanket, n: int, epsilon: float) -> float:
    """Return E[max(X_1 + ... + X_n, 0)]/n, summed over all counts of the atoms."""
    values = [*(blanket.first - math.exp(epsilon) * blanket.second), 0.0]
    masses, total = [*blanket.mass, 1 - blanket.mass.sum()], 0.0
    for places in combinations(range(n + len(values) - 1), len(values) - 1):
        ends = (-1, *places, n + len(values) - 1)
        counts = [b - a - 1 for a, b in pairwise(ends)]
        top = sum(k * v for k, v in zip(counts, values, strict=True))
        if top > 0:
            ways = math.factorial(n) / math.prod(map(math.factorial, counts))
            powers = (m**k for m, k in zip(masses, counts, strict=True))
            total += top * ways * math.prod(powers)
    return total / n


BLANKETS = {
    "codes": KRR(epsilon=1.0, n_classes=5).blanket(),
    "sets": SubsetSelection(epsilon=1.0, n_classes=7, omega=3).blanket(),
    "columns": Hadamard(epsilon=1.0, n_classes=6).blanket(),
    "bits": UnarySymmetric(epsilon=1.0, n_classes=4).blanket(),
    "directions": PrivUnit(epsilon=1.0, d=5).blanket(),
}


@pytest.mark.parametrize("name", BLANKETS)
@pytest.mark.parametrize("at", [0.0, 0.2, 0.7])
def test_the_sum_of_a_blanket_is_counted_upwards(name: str, at: float) -> None:
    """Beside all counts of its atoms; both laws add up to 1."""
    blanket = BLANKETS[name]
    assert blanket.first @ blanket.mass == pytest.approx(1, abs=1e-12)
    assert blanket.second @ blanket.mass == pytest.approx(1, abs=1e-12)
    for n in (1, 2, 9):
        truth = _lemma(blanket, n, at)
        found = blanket.delta(at, n)
        assert truth <= found <= 1.01 * truth + 1e-8


@pytest.mark.parametrize("at", [0.0, 0.3])
def test_no_pair_of_inputs_is_worse_than_the_one_of_the_blanket(at: float) -> None:
    """Of every encoder, all pairs, with what all inputs' laws have in common."""
    for mechanism in (
        KRR(epsilon=1.0, n_classes=5),
        SubsetSelection(epsilon=1.0, n_classes=5, omega=2),
        Hadamard(epsilon=1.0, n_classes=6),
    ):
        laws = mechanism.probabilities(np.arange(mechanism.n_classes))
        under = laws.min(axis=0)
        told = mechanism.blanket().delta(at, 30)
        for first, second in permutations(laws, 2):
            own = Blanket(first / under, second / under, under)
            assert own.delta(at, 30) <= told * (1 + 1e-6)
    for less in (0.1, 0.2, 0.3):  # caps that overlap; laws that are nearer
        far, near = (Blanket.two_levels(1.0, 0.4, overlap) for overlap in (0, less))
        assert near.delta(at, 30) <= far.delta(at, 30) * (1 + 1e-6)
        most = math.tanh(0.5)
        far, near = (Blanket.pure(1.0, v) for v in (most, most * (1 - less)))
        assert near.delta(at, 30) <= far.delta(at, 30) * (1 + 1e-6)


@pytest.mark.parametrize("n", [2, 100, 10**4, 10**6])
def test_two_ways_to_count_clones_agree(n: int) -> None:
    """By binomials, and by the transform that any blanket takes."""
    for epsilon in (0.5, 4.0):
        bits = Blanket.two_levels(epsilon, 0.5)
        binomial = accounting.numerical_bound(epsilon, n, 1e-7)
        transform = bits.epsilon(n, 1e-7, epsilon)
        assert transform == pytest.approx(binomial, rel=0.01)


@pytest.mark.parametrize("d", [1, 6])
@pytest.mark.parametrize("n", [100, 10**4])
def test_gaussian_noise_in_a_crowd(d: int, n: int) -> None:
    """Below the local epsilon, and never below what the sum of all messages tells."""
    noise = Gaussian(epsilon=1.0, d=d, delta=1e-6)
    law = accounting.TruncatedGaussian(0.0, noise.sigma, math.sqrt(d), d)
    told = law.epsilon(n, 1e-6, 1.0)
    ratio = 2 * math.sqrt(d) / (noise.sigma * math.sqrt(n))
    low = norm.cdf(ratio / 2 - told / ratio)
    seen = low - math.exp(told) * norm.cdf(-ratio / 2 - told / ratio)
    assert seen <= 1e-6
    assert told < 1 if n == 10**4 else told <= 1
    guarantee = ShuffledGuarantee.from_local(Budget(1.0, 1e-6), n, law)
    assert guarantee == ShuffledGuarantee(n, told, 1e-6)
    rough = ShuffledGuarantee.from_local(Budget(1.0, 1e-5), n, law)
    assert (rough is None) == (told == 1)


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
