"""1-of-K: its gamma, its thresholds, its two samplers, and what it saves."""

import numpy as np
import pytest
from scipy import stats

from curvote.base.entropy import SeededEntropy
from curvote.mechanisms import make
from curvote.mechanisms.privunit import (
    OneOf,
    one_of_variance,
    privunit_variance,
)
from tests.noise import ALPHA, SEED

KINDS = [(2, 3), (5, 3), (26, 9)]


def made(epsilon: float, n_classes: int, p: int) -> OneOf:
    """Return the mechanism of directions of p numbers."""
    return OneOf(epsilon=epsilon, d=n_classes * p, n_classes=n_classes)


def one(mechanism: OneOf, n: int, own: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return n clients of class ``own`` with the same direction."""
    u = np.linspace(-1, 2, mechanism.length)
    return np.full(n, own), np.tile(u / np.linalg.norm(u), (n, 1))


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
