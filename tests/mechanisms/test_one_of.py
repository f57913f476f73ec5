"""1-of-K: its gamma, its thresholds, its two samplers, and what it saves."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.mechanisms import make
from curvote.mechanisms.privunit import (
    MAX_CLASSES,
    SMALLEST_SHARE,
    Cap,
    OneOf,
    one_of_variance,
    privunit_variance,
)
from tests.noise import ALPHA, SEED, exp_oracle

KINDS = [(2, 3), (5, 3), (26, 9)]


def made(epsilon: float, n_classes: int, p: int) -> OneOf:
    """Return the mechanism of directions of p numbers."""
    return OneOf(epsilon=epsilon, d=n_classes * p, n_classes=n_classes)


def one(mechanism: OneOf, n: int, own: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return n clients of class ``own`` with the same direction."""
    u = np.linspace(-1, 2, mechanism.length)
    return np.full(n, own), np.tile(u / np.linalg.norm(u), (n, 1))


class AcceptAll:
    """Seeded words; a third call, whether a candidate is kept, gives zeros: it is."""

    def __init__(self) -> None:
        self._source, self._calls = SeededEntropy(SEED), 0

    def words(self, n: int) -> np.ndarray:
        self._calls += 1
        words = self._source.words(n)
        return words if self._calls % 3 else np.zeros_like(words)


@pytest.mark.parametrize(("n_classes", "p"), KINDS)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2, 5])
def test_the_cap_is_the_best(epsilon, n_classes, p):
    """No other height gives longer means; the best is the mean itself."""
    mechanism = made(epsilon, n_classes, p)
    gamma = mechanism.cap.gamma
    assert mechanism.m == pytest.approx(gamma, rel=1e-5)
    for other in (0.8 * gamma, 0.95 * gamma, gamma + 0.05 * (1 - gamma)):
        twin = made(epsilon, n_classes, p)
        twin.cap = Cap(other, p)
        assert twin.m < mechanism.m


@pytest.mark.parametrize(("n_classes", "p"), KINDS)
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2, 7.7, 20])
def test_thresholds_are_rounded_towards_privacy(epsilon, n_classes, p):
    """The thresholds' ratio leaves the margin; the next ratio would not."""
    mechanism = made(epsilon, n_classes, p)
    allowed = exp_oracle(Fraction(epsilon) - Fraction(mechanism.margin))
    assert mechanism.worst_ratio() <= allowed
    if epsilon <= 2:  # as far as the oracle is sharp
        assert Fraction(1 << 64, mechanism.threshold_out - 1) > allowed
    assert 0 < mechanism.margin < 1e-9 * epsilon
    assert epsilon - 1e-6 < mechanism.worst_log_ratio() <= epsilon


def test_every_answer_is_possible_for_every_input():
    """A candidate is a function of words alone: neither class nor direction is in."""
    mechanism = made(5.0, 4, 3)
    answers = [
        mechanism.answers(classes, turn * u, AcceptAll())
        for turn in (1, -1)
        for classes, u in (one(mechanism, 50, own) for own in range(4))
    ]
    for named, v in answers[1:]:
        assert (named == answers[0][0]).all()
        assert (v == answers[0][1]).all()
    assert {*answers[0][0].tolist()} == {0, 1, 2, 3}


@pytest.mark.parametrize("epsilon", [0.5, 4])
@pytest.mark.parametrize(("n_classes", "p"), [(2, 2), (5, 3)])
def test_rejection_and_parts_agree(epsilon, n_classes, p):
    """Both name classes and heights as the law says."""
    mechanism, n, own = made(epsilon, n_classes, p), 20_000, 1
    classes, u = one(mechanism, n, own)
    share, kept = mechanism.cap.share, mechanism.acceptance * n_classes
    outside = mechanism.threshold_out / 2**64
    chances = np.full(n_classes, outside / kept)
    chances[own] = (share + outside * (1 - share)) / kept
    found = []
    for draw in (mechanism.answers, mechanism.simulate_reports):
        named, v = draw(classes, u, SeededEntropy(SEED))
        counts = np.bincount(named, minlength=n_classes)
        assert stats.chisquare(counts, n * chances).pvalue > ALPHA
        heights = np.einsum("ij,ij->i", v, u) * mechanism.m
        inside = np.count_nonzero((named == own) & (heights >= mechanism.cap.gamma))
        assert stats.binomtest(inside, n, mechanism.p).pvalue > ALPHA
        found.append((heights[named == own], heights[named != own]))
    for first, second in zip(*found, strict=True):
        assert stats.ks_2samp(first, second).pvalue > ALPHA


@pytest.mark.parametrize(("n_classes", "p"), KINDS)
@pytest.mark.parametrize("epsilon", [0.5, 5])
def test_the_variances_sum_to_the_noise(epsilon, n_classes, p):
    """Over all coordinates they are the squared length less that of the mean."""
    mechanism = made(epsilon, n_classes, p)
    x = mechanism.join_records(*one(mechanism, 1))
    total = float(mechanism.variance(x).sum())
    assert total == pytest.approx(mechanism.m**-2 - 1)
    assert total / mechanism.d == pytest.approx(one_of_variance(n_classes, p, epsilon))


def test_the_noise_is_less_than_the_simplex_code_s_for_many_classes():
    """At epsilon 5 and ten classes a third of it, .08; not so at epsilon 1 or for 2."""

    def simplex(k: int, epsilon: float) -> float:
        return ((k - 1) / k) ** 2 * privunit_variance((k - 1) * 11, epsilon)

    assert one_of_variance(10, 11, 5.0) < 0.088
    assert 2.7 * one_of_variance(10, 11, 5.0) < simplex(10, 5.0)
    for k, epsilon in ((10, 1.0), (2, 1.0), (2, 5.0), (26, 2.0)):
        assert one_of_variance(k, 11, epsilon) > simplex(k, epsilon)
    for k, epsilon in ((5, 5.0), (10, 3.0), (26, 5.0)):
        assert one_of_variance(k, 11, epsilon) < simplex(k, epsilon)


def test_clip_keeps_the_longest_block():
    """Other blocks are dropped, the longest is normalised; each changed row counts."""
    values = [[0, 0, 3, 4], [0.6, 0.8, 0, 0], [0, 0, 0, 0], [0.6, 0.8, 0, 1e-9]]
    values += [[1e308, 1e308, 1e308, 0], [0, 5e-324, 0, 0]]
    clipped, count = make("one_of", epsilon=1, d=4, n_classes=2).clip(values)
    assert count == 5
    assert np.linalg.norm(clipped, axis=1) == pytest.approx(1)
    assert clipped[0] == pytest.approx([0, 0, 0.6, 0.8])
    assert clipped[1].tolist() == clipped[3].tolist()
    assert clipped[1] == pytest.approx([0.6, 0.8, 0, 0])
    assert clipped[2].tolist() == [1, 0, 0, 0]
    assert clipped[4, 2:].tolist() == [0, 0]


def test_two_blocks_or_none_are_not_possible():
    """Nor is another length."""
    mechanism = made(1.0, 3, 2)
    draws = mechanism.randomize(np.eye(6), SeededEntropy(SEED))
    assert mechanism.possible_mask(draws).all()
    named, v = mechanism.split_records(draws)
    split = mechanism.join_records(named, v * 0.8) + mechanism.join_records(
        (named + 1) % 3, v * 0.6
    )
    assert np.linalg.norm(split, axis=1) == pytest.approx(1 / mechanism.m)
    for wrong in (split, 0 * draws, 1.001 * draws):
        assert not mechanism.possible_mask(wrong).any()


@pytest.mark.parametrize("n_classes", [2, 26, MAX_CLASSES])
def test_the_work_is_bounded(n_classes):
    """However large epsilon is, at least 2^-12 of the candidates is kept."""
    for epsilon in (20, 1e4):
        mechanism = made(epsilon, n_classes, 3)
        assert mechanism.acceptance >= mechanism.share >= SMALLEST_SHARE * (1 - 1e-9)


@pytest.mark.parametrize(
    ("d", "n_classes", "match"),
    [
        (4, 1, "n_classes is 1"),
        (7, 3, "3 blocks"),
        (3, 3, "d is 3"),
        (1 << 12, 1 << 11, "at most 1,024"),
    ],
)
def test_what_is_no_record_is_refused(d, n_classes, match):
    """One class, blocks of several lengths, a single number, too many classes."""
    with pytest.raises(UserError, match=match):
        make("one_of", epsilon=1, d=d, n_classes=n_classes)
