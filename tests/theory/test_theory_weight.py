"""Omega, eta and g of proposition 2, against their definitions and real noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvote.advise.mrma import noised_eta, omega, pointwise_utility
from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.mechanisms import make

levels = st.floats(0.01, 200)
points = st.floats(-2, 2)
RULE = np.polynomial.legendre.leggauss(200)


def logistic(z: np.ndarray) -> np.ndarray:
    """Return an eta that is 1/2 off the centre."""
    return 1 / (1 + np.exp(-3 * z - 0.5))


@given(z0=points, epsilon=levels)
def test_omega_has_mean_one(z0: float, epsilon: float) -> None:
    """E omega(Z | z0) = 1 over z ~ U(-1, 1), by trapezoids that are fine around z0."""
    around = np.clip(z0, -1, 1) + 2 / epsilon * np.linspace(-40, 40, 8001)
    z = np.sort(np.clip(np.concatenate([np.linspace(-1, 1, 2001), around]), -1, 1))
    assert np.trapezoid(omega(z, z0, epsilon), z) / 2 == pytest.approx(1, abs=1e-4)


@given(z0=st.floats(1, 2), epsilon=levels)
def test_a_report_beyond_the_interval_says_what_one_at_its_end_says(
    z0: float, epsilon: float
) -> None:
    """The Laplace law forgets; by the definition, not by clipping."""
    scale, z = 2 / epsilon, np.linspace(-1, 1, 5)
    kernel = np.exp(-(z0 - z) / scale + (z0 - 1) / scale)
    mean = RULE[1] @ np.exp(-(1 - RULE[0]) / scale) / 2
    assert omega(z, z0, epsilon) == pytest.approx(kernel / mean, rel=1e-6, abs=1e-12)


def test_strong_noise_weighs_everybody_alike() -> None:
    """As epsilon falls, omega tends to 1 (figure 1)."""
    z, z0 = np.meshgrid(np.linspace(-1, 1, 21), np.linspace(-2, 2, 41))
    ranges = [np.ptp(omega(z, z0, epsilon)) for epsilon in (10, 1, 0.1, 0.01)]
    assert ranges == sorted(ranges, reverse=True)
    assert ranges[-1] < 0.02
    assert omega(z, z0, 1e-9) == pytest.approx(np.ones_like(z), abs=1e-6)


@given(z0=st.floats(-1, 1), keep=st.floats(0.5, 1))
def test_protecting_only_the_label_shrinks_by_a_factor(z0: float, keep: float) -> None:
    """It is 2q - 1, exactly at epsilon_z = inf and in the limit."""
    expected = (2 * keep - 1) * (logistic(np.array(z0)) - 0.5)
    for epsilon, tolerance in ((math.inf, 1e-12), (1e6, 1e-4)):
        found = noised_eta(logistic, z0, epsilon, keep) - 0.5
        assert float(found) == pytest.approx(float(expected), abs=tolerance)


def test_labels_of_real_reports_follow_eta_and_g() -> None:
    """Near a noised z0 the noised labels, and pairs of them, are as often as said."""
    rng, n, epsilon, keep = np.random.default_rng(3), 2_000_000, 2.0, 0.8
    z = rng.uniform(-1, 1, n)
    noise = make("laplace", epsilon=epsilon).randomize(z, SeededEntropy(4))
    label = (rng.random(n) < logistic(z)) == (rng.random(n) < keep)
    for z0 in (-1.5, -0.4, 0.7):
        near = np.abs(noise - z0) < 0.02
        share, count = label[near].mean(), near.sum()
        slack = 5 * 0.5 / np.sqrt(count) + 2e-3
        assert abs(share - float(noised_eta(logistic, z0, epsilon, keep))) < slack
        again = rng.random(count) < logistic(np.full(count, z0))
        agree = float(pointwise_utility(logistic, z0, epsilon, keep))
        assert abs((again == label[near]).mean() - agree) < slack


def test_noise_misleads_where_the_curve_turns() -> None:
    """A narrow bump of class +1 in a sea of -1 is out-voted: g < 1/2 at its top."""

    def eta(z: np.ndarray) -> np.ndarray:
        return np.where(np.abs(z) < 0.1, 0.9, 0.1)

    assert pointwise_utility(eta, 0.0, 1.0) < 0.5
    assert pointwise_utility(eta, 0.0, 1000.0) > 0.5


def test_shapes_broadcast() -> None:
    """Meshes for omega, any array of z0 for eta and g."""
    z0 = np.linspace(-2, 2, 6).reshape(2, 3)
    assert omega(np.zeros((4, 1)), np.zeros(5), 1.0).shape == (4, 5)
    assert noised_eta(logistic, z0, 1.0, 0.7).shape == (2, 3)
    assert pointwise_utility(logistic, z0, 1.0).shape == (2, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: omega(0.0, 0.0, 0.0), "epsilon_z is 0"),
        (lambda: omega(0.0, math.nan, 1.0), "nan"),
        (lambda: noised_eta(logistic, 0.0, 1.0, 0.4), "keep is 0.4"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any, message: str) -> None:
    """Each message names the argument."""
    with pytest.raises(UserError, match=message):
        call()
