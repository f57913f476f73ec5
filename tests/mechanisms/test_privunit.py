"""PrivUnit: its caps, its thresholds, its rejection and its direct law."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import integrate, stats

from curvote.audit.message_subject import message_subject_of
from curvote.base.entropy import SeededEntropy
from curvote.checks import examples
from curvote.checks import loss_checks as audit_exact
from curvote.mechanisms import make, privunit
from curvote.mechanisms.privunit import Cap, best_cap
from tests.noise import ALPHA, SEED


def rows(u: list[float], n: int) -> np.ndarray:
    """Return the same direction n times, normalised."""
    return np.tile(np.array(u) / np.linalg.norm(u), (n, 1))


def heights_and_angles(mechanism, draws, u) -> tuple[np.ndarray, np.ndarray]:
    """Return <v, u> of the draws' directions v in R^3, and their angle around u."""
    v = draws * mechanism.m
    across = np.cross(u[0], [0.0, 0.0, 1.0])
    across /= np.linalg.norm(across)
    return v @ u[0], np.arctan2(v @ across, v @ np.cross(u[0], across))


@pytest.mark.parametrize("d", [2, 3, 7, 200])
@pytest.mark.parametrize("gamma", [0.0, 0.05, 0.2])
def test_cap_moments(d, gamma):
    """A cap's share and moments are the integrals of the height's density."""
    normaliser = math.exp(math.lgamma(d / 2) - math.lgamma((d - 1) / 2))
    normaliser /= math.sqrt(math.pi)

    def moment(power: int) -> float:
        def density(angle: float) -> float:
            return math.cos(angle) ** power * math.sin(angle) ** (d - 2)

        ends = (0, math.acos(gamma))
        return normaliser * integrate.quad(density, *ends, epsabs=1e-14)[0]

    cap = Cap(gamma, d)
    found = [cap.share, cap.first, cap.second]
    assert found == pytest.approx([moment(0), moment(1), moment(2)], rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1, 2])
def test_noise_per_coordinate(epsilon):
    """(1/m)^2 epsilon^2 / d is 5.4 to 6.4 for every d from 3 to 50."""
    squares = [
        epsilon**2 / (make("privunit", epsilon=epsilon, d=d).m ** 2 * d)
        for d in range(3, 51)
    ]
    assert 5.35 < min(squares) <= max(squares) < 6.45


def test_a_halved_threshold_is_told_by_the_exact_check_of_the_message(monkeypatch):
    """The loss that is stated is the true one, ln 2 too large: nothing clamps it."""
    honest = privunit._reject_threshold
    monkeypatch.setattr(privunit, "_reject_threshold", lambda rest: honest(rest) // 2)
    subject = message_subject_of(examples.example_task("direct", "report", 1.0))
    assert subject.loss().log == pytest.approx(1 + math.log(2))
    found = audit_exact.check_declared_loss(subject, subject.loss())
    assert found == "the worst loss is 1.69315, not 1"


def test_a_cap_holds_its_share_wherever_it_is():
    """Candidates fall into caps around any direction as often as uniform ones do."""
    candidates = privunit.normal_numbers(3 * 400_000, SeededEntropy(SEED)).reshape(
        -1, 3
    )
    candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)
    share, n = Cap(0.6, 3).share, len(candidates)
    for u in rows([1, 0, 0], 1), rows([0, 0, -1], 1), rows([1, -2, 3], 1):
        found = np.count_nonzero(candidates @ u[0] >= 0.6)
        assert stats.binomtest(found, n, share).pvalue > ALPHA


def test_normals_are_normal():
    """Box and Muller's numbers follow the normal law; an odd number is possible."""
    draws = privunit.normal_numbers(99_999, SeededEntropy(SEED))
    assert draws.shape == (99_999,)
    assert stats.kstest(draws, stats.norm.cdf).pvalue > ALPHA
    assert abs(np.corrcoef(draws[:49_999], draws[50_000:])[0, 1]) < 0.03


@pytest.mark.parametrize("epsilon", [0.5, 4, 10])
def test_rejection_and_direct_law_agree(epsilon):
    """Heights and angles of both samplers are alike, and uniform around the input."""
    mechanism, n = make("privunit", epsilon=epsilon, d=3), 4000
    u = rows([1, -2, 0.5], n)
    first, second = (
        heights_and_angles(mechanism, draw(u, SeededEntropy(SEED)), u)
        for draw in (mechanism.randomize, mechanism.simulate)
    )
    for a, b in zip(first, second, strict=True):
        assert stats.ks_2samp(a, b).pvalue > ALPHA
    for _, angles in (first, second):
        uniform = stats.uniform(-math.pi, 2 * math.pi).cdf
        assert stats.kstest(angles, uniform).pvalue > ALPHA
    for heights, _ in (first, second):
        inside = np.count_nonzero(heights >= mechanism.cap.gamma)
        assert stats.binomtest(inside, n, mechanism.p).pvalue > ALPHA


def test_another_cap_is_told_apart():
    """The two-sample test refuses a direct law with another epsilon."""
    mechanism, other = (make("privunit", epsilon=e, d=3) for e in (4, 5))
    u = rows([1, -2, 0.5], 4000)
    one = mechanism.randomize(u, SeededEntropy(SEED)) * mechanism.m
    two = other.simulate(u, SeededEntropy(SEED)) * other.m
    assert stats.ks_2samp(one @ u[0], two @ u[0]).pvalue < ALPHA


@pytest.mark.parametrize("d", [2, 3, 30])
def test_direct_heights_invert_the_distribution(d):
    """A height h drawn inside has P(H >= h) = share times the uniform; so outside."""
    cap, uniform = best_cap(2, d), np.array([1e-4, 0.01, 0.5, 0.99, 1 - 1e-9])
    inside = cap.draw_heights(np.full(5, True), uniform)
    assert (inside >= cap.gamma - 1e-12).all()
    outside = cap.draw_heights(np.full(5, False), uniform)
    assert (outside <= cap.gamma + 1e-12).all()
    above = [cap.share * uniform, cap.share + (1 - cap.share) * uniform]
    for heights, expected in zip((inside, outside), above, strict=True):
        shares = [
            dataclasses.replace(cap, gamma=abs(h)).share for h in heights.tolist()
        ]
        found = np.where(heights >= 0, shares, 1 - np.array(shares))
        assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1, 10, 100])
def test_constant_length(epsilon):
    """Every answer has the length 1/m, whatever the input."""
    mechanism = make("privunit", epsilon=epsilon, d=6)
    values = np.random.default_rng(SEED).normal(size=(20, 6))
    lengths = np.linalg.norm(mechanism.randomize(values, SeededEntropy(SEED)), axis=1)
    assert lengths == pytest.approx(1 / mechanism.m)


def test_clip_normalises_and_counts():
    """Rows become unit vectors, zero rows the first axis; each changed row counts."""
    third = 1 / math.sqrt(3)
    values = [[3, 0, 4], [0, 0, 0], [third] * 3, [0, 1, 0]]
    values += [[1e308, 1e308, 0], [0, 5e-324, 0], [0, 1 + 1e-6, 0]]
    clipped, count = make("privunit", epsilon=1, d=3).clip(values)
    assert count == 5
    assert np.linalg.norm(clipped, axis=1) == pytest.approx(1)
    assert clipped[0] == pytest.approx([0.6, 0, 0.8])
    assert clipped[1].tolist() == [1, 0, 0]
    assert clipped[4] == pytest.approx([math.sqrt(0.5)] * 2 + [0])
