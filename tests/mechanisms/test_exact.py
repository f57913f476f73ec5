"""The exact samplers: integers, rational bounds and the closed form's law."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import InternalError
from curvote.mechanisms import exact
from tests.noise import ALPHA, SEED, Replay, exp_oracle


def exp_prefix(u: int, bits: int, width: int) -> int:
    """Return the first ``width`` bits of exp(-u / 2^bits)."""
    return math.floor(2**width / exp_oracle(Fraction(u, 1 << bits)))


def closed_form(rate: float, k: np.ndarray) -> np.ndarray:
    """Return the discrete Laplace law's probabilities of the integers k."""
    return np.tanh(rate / 2) * np.exp(-rate * np.abs(k))


@given(
    numerator=st.integers(0, 3 << 52),
    bits=st.sampled_from([64, 128, 256]),
)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_exp_bounds_enclose(numerator, bits):
    """The integer bounds enclose 2^bits e^-x, three units apart at most."""
    low, high = exact.exp_bounds(numerator, 1 << 52, bits)
    power = exp_oracle(Fraction(numerator, 1 << 52))
    assert low * power <= 2**bits <= high * (power + Fraction(1, 2**300))
    assert high - low <= 3


def test_exp_bounds_of_tiny_powers():
    """Powers below one unit are enclosed by 0 and a small integer."""
    assert exact.exp_bounds(10**9, 1, 64) == (0, 1)
    low, high = exact.exp_bounds(60, 1, 64)
    assert low == 0 < high <= 2


@pytest.mark.parametrize("margin", [exact.MARGIN, 1.0])
@pytest.mark.parametrize("bits", [1, 3, 5])
def test_below_exp_at_its_bounds(bits, margin, monkeypatch):
    """Words next to the bound are decided as rational arithmetic decides them."""
    monkeypatch.setattr(exact, "MARGIN", margin)
    u = np.arange(1, 1 << bits)
    at = np.array([exp_prefix(k, bits, 64) for k in u.tolist()], dtype=np.uint64)
    entropy = SeededEntropy(SEED)
    for step in (1, 5, 1 << 15, 1 << 40):
        assert exact.bernoulli_exp(at - np.uint64(step), u, bits, entropy).all()
        assert not exact.bernoulli_exp(at + np.uint64(step), u, bits, entropy).any()


@pytest.mark.parametrize(("offset", "below"), [(-9, True), (9, False)])
def test_undecided_words_draw_more_bits(offset, below):
    """A word that equals the bound's first 64 bits is settled by the next one."""
    first, second = divmod(exp_prefix(3, 3, 128) + offset, 1 << 64)
    u, entropy = np.array([3]), Replay(second)
    words = np.array([first], dtype=np.uint64)
    assert exact.bernoulli_exp(words, u, 3, entropy).tolist() == [below]
    assert not entropy.left


def test_geometric_at_its_bounds():
    """V steps down where the word passes floor(e^-k 2^64); ties draw more bits."""
    for k in (1, 2, 3):
        bound = exp_prefix(k, 0, 64)
        words = np.array([bound - 1, bound + 1], dtype=np.uint64)
        assert exact.geometric_draws(words, 99, Replay()).tolist() == [k, k - 1]
        for fresh, v in ((0, k), (2**64 - 1, k - 1)):
            tie = np.array([bound], dtype=np.uint64)
            assert exact.geometric_draws(tie, 99, Replay(fresh)).tolist() == [v]


def test_geometric_of_zeros_ends():
    """Even an endless run of zero bits ends, at the stated largest V."""
    zeros = np.zeros(1, dtype=np.uint64)
    assert exact.geometric_draws(zeros, 70, Replay(0, 0, 0)).tolist() == [70]


def test_geometric_filter_is_the_exact_path():
    """The table lookup and exact arithmetic give the same V for the same words."""
    words = SeededEntropy(SEED).words(400) >> np.repeat(np.uint64([0, 20]), 200)
    table = exact.geometric_draws(words, 99, Replay())
    slow = [exact.geometric_draw(word, 99, Replay()) for word in words.tolist()]
    assert table.tolist() == slow
    assert max(slow) > 12


@pytest.mark.parametrize("bits", [0, 4, 52])
def test_laplace_filter_is_the_exact_path(bits, monkeypatch):
    """With the margin at 1 every comparison is exact, and every draw the same."""
    law = exact.DiscreteLaplace(3, bits)
    fast = law.sample(1500, SeededEntropy(SEED))
    monkeypatch.setattr(exact, "MARGIN", 1.0)
    assert (law.sample(1500, SeededEntropy(SEED)) == fast).all()


@pytest.mark.parametrize(("s", "bits"), [(1, 1), (1, 2), (3, 2), (5, 2), (3, 3)])
def test_discrete_laplace_channel_by_enumeration(s, bits):
    """Every (U, sign, V) has its place, and the sum of their masses is the law."""
    vs = range(40)
    cases = list(product(range(1 << bits), (0, 1), vs))
    powers = [math.exp(-v) * 2**64 for v in range(41)]
    between = [int((powers[v] + powers[v + 1]) / 2) for v in vs]
    uniform = [u << (64 - bits) | sign for u, sign, _ in cases]
    replay = Replay(*uniform, *[0] * len(cases), *[between[v] for _, _, v in cases])
    signed = [(-1) ** sign * ((u + (v << bits)) // s) for u, sign, v in cases]
    placed = [(k, c) for k, c in zip(signed, cases, strict=True) if k or not c[1]]
    drawn = exact.DiscreteLaplace(s, bits)._draw_candidates(len(cases), replay)
    assert drawn.tolist() == [k for k, _ in placed]
    mass: dict[int, float] = dict.fromkeys(range(-9, 10), 0.0)
    for k, (u, _, v) in placed:
        mass[k] = mass.get(k, 0) + math.exp(-u / 2**bits - v)
    at, total = np.arange(-9, 10), sum(mass.values())
    found = np.array([mass[k] for k in at.tolist()]) / total
    assert found == pytest.approx(closed_form(s / 2**bits, at), rel=1e-9)


@pytest.mark.parametrize(("s", "bits"), [(1, 0), (1, 1), (3, 2), (5, 4), (1 << 51, 52)])
def test_discrete_laplace_chi_square(s, bits):
    """Draws at small t have the closed form's frequencies, and not those of 0.7 s/t."""
    law, n, edge = exact.DiscreteLaplace(s, bits), 60_000, 6
    draws = np.clip(law.sample(n, SeededEntropy(SEED)), -edge, edge)
    k = np.arange(-edge, edge + 1)
    counts = (draws == k[:, None]).sum(axis=1)
    critical = stats.chi2.isf(ALPHA, 2 * edge)
    for rate, fits in ((law.rate, True), (0.7 * law.rate, False)):
        p = closed_form(rate, k)
        p[[0, -1]] = np.exp(-rate * edge) / (1 + np.exp(-rate))
        statistic = np.sum((counts - n * p) ** 2 / (n * p))
        assert (statistic < critical) == fits


def test_discrete_laplace_cdf_and_variance():
    """The declared law is the sum of the closed form's masses."""
    law, k = exact.DiscreteLaplace(3, 2), np.arange(-80, 81)
    mass = closed_form(law.rate, k)
    assert law.cdf(k) == pytest.approx(np.cumsum(mass), abs=1e-14)
    assert law.cdf([-np.inf, 0.5, np.inf]) == pytest.approx([0, float(law.cdf(0)), 1])
    assert law.variance == pytest.approx(np.sum(mass * k**2))


def test_any_number_of_draws():
    """The chunks fill exactly what was asked for, none at all included."""
    law = exact.DiscreteLaplace(1, 2)
    for n in (0, 1, 10_000, 40_000):
        assert law.sample(n, SeededEntropy(SEED)).shape == (n,)


@pytest.mark.parametrize(("s", "bits"), [(0, 52), (1, 53), (1 << 63, 52), (1, -1)])
def test_discrete_laplace_refuses_what_overflows(s, bits):
    """Integers that 64 bits cannot hold are an error of ours."""
    with pytest.raises(InternalError):
        exact.DiscreteLaplace(s, bits)
