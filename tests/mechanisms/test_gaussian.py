"""The discrete Gaussian sampler, and the calibration of the Gaussian mechanism."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from curvote.audit import run, shipped
from curvote.base.entropy import SeededEntropy
from curvote.base.errors import InternalError, UserError
from curvote.base.privacy import ZCDP
from curvote.mechanisms import gaussian, make
from curvote.mechanisms.gaussian import DiscreteGaussian, delta_bound, loss_deviation
from tests.noise import ALPHA, SEED, Replay


def of_sigma(sigma: float) -> DiscreteGaussian:
    """Return the law with this sigma."""
    return DiscreteGaussian(0.5 / sigma**2)


def weights(sigma: float, k: np.ndarray) -> np.ndarray:
    """Return the law's probabilities of the integers k, which hold nearly all of it."""
    law = np.exp(-(k**2) / (2 * sigma**2))
    return law / law.sum()


def analytic_delta(epsilon: float, ratio: float) -> mpmath.mpf:
    """Return theorem 8 of Balle & Wang (2018), to 60 digits."""
    with mpmath.workdps(60):
        middle, half = mpmath.mpf(epsilon) / ratio, mpmath.mpf(ratio) / 2
        return mpmath.ncdf(half - middle) - mpmath.exp(epsilon) * mpmath.ncdf(
            -half - middle
        )


@pytest.mark.parametrize("sigma", [16.0, 22.7, 300.0, 2.0**30])
def test_draws_follow_the_law(sigma):
    """Draws have the closed form's law where it has few values, and the normal's."""
    draws = of_sigma(sigma).sample(60_000, SeededEntropy(SEED))
    half = np.arange(-200, 201) / 40
    k = np.arange(-int(10 * sigma), int(10 * sigma) + 1) if sigma < 1000 else None
    at = np.rint(half * sigma)
    declared = (
        stats.norm.cdf(at / sigma)
        if k is None
        else np.cumsum(weights(sigma, k))[(at + k[-1]).astype(int)]
    )
    reached = np.searchsorted(np.sort(draws), at, side="right") / draws.size
    allowed = math.sqrt(math.log(2 / ALPHA) / (2 * draws.size))
    assert np.abs(reached - declared).max() <= allowed
    assert draws.var() / sigma**2 == pytest.approx(1, abs=0.04)


def test_a_wrong_scale_is_caught():
    """The same test refuses draws whose sigma is a tenth too large."""
    draws = of_sigma(330.0).sample(60_000, SeededEntropy(SEED))
    assert abs(draws.var() / 300.0**2 - 1) > 0.04


@pytest.mark.parametrize("sigma", [16.0, 22.6, 22.7, 1e6, 2.0**52])
def test_the_exponent_is_never_negative(sigma):
    """E is exactly at least 0, next to its zero too, and small there."""
    law = of_sigma(sigma)
    lowest = round(2.0**law.bits / (2 * law._scaled_rate))
    exponents = [law._exact_exponent(y) for y in range(lowest - 9, lowest + 10)]
    assert 0 <= min(exponents) < Fraction(1, 100)
    floats = law._exponent(np.arange(lowest - 9, lowest + 10))
    assert floats == pytest.approx([float(e) for e in exponents], abs=1e-14)


def test_the_exact_comparison_decides_as_the_filter(monkeypatch):
    """Candidates settled in exact arithmetic are kept just as in floating point."""
    law = of_sigma(1000.0)
    y = law.proposal.sample(300, SeededEntropy(SEED))
    words = SeededEntropy(SEED + 1).words(300)
    fast = law._accept(y, words, Replay())
    monkeypatch.setattr(gaussian, "MARGIN", 1.0)
    assert (law._accept(y, words, SeededEntropy(SEED)) == fast).all()
    assert 0.5 < fast.mean() < 0.9


def test_sigma_out_of_range():
    """A sigma that the sampler does not hold is an internal error."""
    for sigma in (15.0, 2.0**53):
        with pytest.raises(InternalError):
            of_sigma(sigma)


@pytest.mark.parametrize("ratio", [1e-7, 1e-3, 0.3, 0.99, 1.01, 4, 30])
@pytest.mark.parametrize("z", [-3, -0.5, 0.5, 5, 30])
def test_continuous_delta(ratio, z):
    """The float calculation is never below the exact one, nor far above."""
    epsilon = ratio * (z + ratio / 2)
    if epsilon > 0:
        exact = analytic_delta(epsilon, ratio)
        assert 0 <= delta_bound(epsilon, ratio) / exact - 1 < 1e-9


@pytest.mark.parametrize("sigma", [16, 40])
@pytest.mark.parametrize("shift", [(7, 0), (20, 20), (13, 30)])
def test_discrete_noise_is_as_private_as_the_bound_says(sigma, shift):
    """The exact delta of two discrete Gaussians is below the bound, for any shift."""
    k = np.arange(-12 * sigma, 12 * sigma + 1)
    one = [np.stack([weights(sigma, k), weights(sigma, k - s)]) for s in shift]
    p, q = (np.outer(one[0][i], one[1][i]) for i in (0, 1))
    ratio = math.hypot(*shift) / math.sqrt(sigma**2 - gaussian.ROUNDING_VARIANCE)
    for epsilon in (0.01, 0.5, 2):
        delta = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        assert delta <= delta_bound(epsilon, ratio)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 5, 10, 50])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
@pytest.mark.parametrize("d", [1, 5, 1000])
def test_calibration(epsilon, delta, d):
    """The exact delta at epsilon is the claimed one, or less by 1e-6 at most."""
    mechanism = make("gaussian", epsilon=epsilon, delta=delta, d=d)
    ratio = loss_deviation(mechanism.noise.sigma, mechanism.noise.sensitivity)
    assert ratio == pytest.approx(2 * math.sqrt(d) / mechanism.sigma, rel=1e-7)
    assert 0 <= 1 - analytic_delta(epsilon, ratio) / delta < 1e-6
    assert mechanism.delta_at(epsilon) <= delta
    assert epsilon * (1 - 1e-6) <= mechanism.worst_log_ratio() <= epsilon


@pytest.mark.parametrize("share", [0.5, 0.99, 1 - 1e-9])
def test_too_little_noise_is_declared_and_caught(monkeypatch, share):
    """A sigma below the calibrated one shows in the loss, and the audit refuses it."""
    calibrate = gaussian.calibrate_sigma
    monkeypatch.setattr(
        gaussian, "calibrate_sigma", lambda *claim: share * calibrate(*claim)
    )
    assert make("gaussian", epsilon=1, delta=1e-5, d=3).worst_log_ratio() > 1
    for name in ("gaussian", "transfer.moments", "transfer.kernel"):
        (row,) = run(shipped(name, 2.0), samples=0)
        assert "exact" in row.caught_by, (name, row.checks)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_less_noise_than_the_classical_bound(epsilon, delta):
    """Sigma is 1.2 to 3.3 times below sqrt(2 ln(1.25/delta)) diameter / epsilon."""
    diameter = 2 * math.sqrt(5)
    classical = math.sqrt(2 * math.log(1.25 / delta)) * diameter / epsilon
    sigma = make("gaussian", epsilon=epsilon, delta=delta, d=5).sigma
    assert 1.2 <= classical / sigma <= 3.3


def test_zcdp():
    """``rho`` is the diameter's square over 2 sigma^2; its budget is no smaller."""
    mechanism = make("gaussian", epsilon=1, delta=1e-6, d=5)
    assert mechanism.rho == pytest.approx(20 / (2 * mechanism.sigma**2))
    assert 1 < ZCDP(mechanism.rho).to_budget(1e-6).epsilon < 1.15


def test_delta_at_other_epsilons():
    """Delta falls with epsilon; an epsilon that is none is a UserError."""
    mechanism = make("gaussian", epsilon=1, delta=1e-6, d=2)
    deltas = [mechanism.delta_at(epsilon) for epsilon in (0, 0.5, 1, 2, 1e9)]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[2] == pytest.approx(1e-6)
    for bad in (-1, math.nan, math.inf):
        with pytest.raises(UserError, match="epsilon"):
            mechanism.delta_at(bad)


@pytest.mark.parametrize("bad", [0, 1, -1, math.nan])
def test_delta_out_of_range(bad):
    """A delta outside (0, 1) is a UserError."""
    with pytest.raises(UserError, match="delta"):
        make("gaussian", epsilon=1, d=2, delta=bad)


def test_too_much_noise_is_refused():
    """Where sigma would exceed 2^32 the user is told so."""
    with pytest.raises(UserError, match="more noise"):
        make("gaussian", epsilon=2.0**-20, d=10**6, delta=1e-12)
