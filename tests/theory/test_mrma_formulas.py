"""Formulas of MRMA: variation, votes, omega, eta and g, as real noise has them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from curvote.advise import mrma
from curvote.advise.mrma import noised_eta, omega, pointwise_utility
from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.client.report import draw_votes
from curvote.learning.votes import estimate_utility, reversal_mask
from curvote.mechanisms import make, per_coordinate
from tests.server.test_aggregation import utility_variance


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_it_is_the_share_that_real_noise_carries_out(d, epsilon):
    """Draws of the mechanism leave the cube as often as said."""
    n = 200_000
    z = np.random.default_rng(5).uniform(-1, 1, size=(n, d))
    noised = per_coordinate("laplace", d, epsilon).randomize(z, SeededEntropy(6))
    outside = (np.abs(noised) > 1).any(axis=1).mean()
    expected = mrma.total_variation(d, epsilon)
    error = np.sqrt(expected * (1 - expected) / n)
    assert abs(outside - expected) < 5 * error + 1e-5


@given(epsilon=st.floats(0.05, 50))
def test_it_is_half_the_l1_norm_of_the_densities(epsilon):
    """On a line: the noised density is (F(z + 1) - F(z - 1))/2, F the noise's law."""
    scale = 2 / epsilon

    def law(x):
        tail = np.exp(-np.abs(x) / scale) / 2
        return np.where(x < 0, tail, 1 - tail)

    edges = [-1 - 40 * scale, *np.linspace(-1 - 3 * scale, -1, 40)]
    edges += [*np.linspace(-1, 1, 80), *np.linspace(1, 1 + 3 * scale, 40)]
    edges.append(1 + 40 * scale)
    nodes, weights = np.polynomial.legendre.leggauss(30)
    half = np.diff(edges)[:, None] / 2
    z = np.array(edges[:-1])[:, None] + half * (1 + nodes)
    noised = (law(z + 1) - law(z - 1)) / 2
    distance = (half * weights * np.abs(np.where(np.abs(z) < 1, 0.5, 0) - noised)).sum()
    assert 2 * mrma.total_variation(1, epsilon) == pytest.approx(distance, abs=1e-6)


@given(d=st.integers(1, 200), epsilon=st.floats(1e-3, 1e3))
def test_it_grows_with_dimension_and_noise(d, epsilon):
    """Between 0 and 1."""
    context = mrma.total_variation(d, epsilon)
    assert 0 < context <= 1
    assert mrma.total_variation(d + 1, epsilon) >= context
    assert mrma.total_variation(d, epsilon / 2) >= context


def test_the_ends():
    """Nothing moves without noise; with endless noise nothing stays."""
    assert mrma.total_variation(3, 1e12) == pytest.approx(9e-12, rel=1e-3)
    assert mrma.total_variation(1, 1e-9) == pytest.approx(1, abs=1e-8)
    assert mrma.total_variation(1, 1.0) == pytest.approx(1 - np.exp(-1))


def cast(r, n, epsilon, runs):
    """Return how many of ``n`` clients say "right", for each of ``runs``."""
    rng = np.random.default_rng(1)
    decision = np.where(rng.random(runs * n) < r, 1.0, -1.0)
    said = draw_votes(decision, np.ones(runs * n), epsilon, SeededEntropy(2))
    return said.reshape(runs, n).sum(axis=1)


@given(r=st.floats(0, 1), n=st.integers(1, 400), epsilon=st.floats(0.05, 8))
def test_the_variance_is_largest_at_even_odds(r, n, epsilon):
    """There it is ((e^eps + 1)/(e^eps - 1))^2 / (4 n), and no accuracy has a larger."""
    q = mrma.keep_probability(epsilon)
    bound = 1 / (4 * n * np.tanh(epsilon / 2) ** 2)
    assert utility_variance(r, n, q) <= bound * (1 + 1e-12)
    assert utility_variance(0.5, n, q) == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("r", [0.3, 0.7])
@pytest.mark.parametrize("n", [49, 50])
def test_reversal_is_right_as_often_as_said(r, n):
    """With real votes and the real rule, ties included, for even and odd n."""
    runs, epsilon = 20_000, 0.5
    positive = cast(r, n, epsilon, runs)
    flipped = reversal_mask(positive, np.full(runs, n))
    keep = mrma.keep_probability(epsilon)
    kept = binom.sf(np.ceil(n / 2) - 1, n, keep * r + (1 - keep) * (1 - r))
    expected = kept if r > 0.5 else 1 - kept
    error = np.sqrt(expected * (1 - expected) / runs)
    assert abs((flipped == (r < 0.5)).mean() - expected) < 5 * error
    variance = estimate_utility(positive, np.full(runs, n), keep).value.var()
    exact = float(utility_variance(r, n, keep))
    assert variance == pytest.approx(exact, rel=5 * np.sqrt(2 / runs))


levels = st.floats(0.01, 200)
points = st.floats(-2, 2)
RULE = np.polynomial.legendre.leggauss(200)


def logistic(z):
    """Return an eta that is 1/2 off the centre."""
    return 1 / (1 + np.exp(-3 * z - 0.5))


@given(z0=points, epsilon=levels)
def test_omega_has_mean_one(z0, epsilon):
    """E omega(Z | z0) = 1 over z ~ U(-1, 1), by trapezoids that are fine around z0."""
    around = np.clip(z0, -1, 1) + 2 / epsilon * np.linspace(-40, 40, 8001)
    z = np.sort(np.clip(np.concatenate([np.linspace(-1, 1, 2001), around]), -1, 1))
    assert np.trapezoid(omega(z, z0, epsilon), z) / 2 == pytest.approx(1, abs=1e-4)


@given(z0=st.floats(1, 2), epsilon=levels)
def test_a_report_beyond_the_interval_says_what_one_at_its_end_says(z0, epsilon):
    """The Laplace law forgets; by the definition, not by clipping."""
    scale, z = 2 / epsilon, np.linspace(-1, 1, 5)
    kernel = np.exp(-(z0 - z) / scale + (z0 - 1) / scale)
    mean = RULE[1] @ np.exp(-(1 - RULE[0]) / scale) / 2
    assert omega(z, z0, epsilon) == pytest.approx(kernel / mean, rel=1e-6, abs=1e-12)


def test_strong_noise_weighs_everybody_alike():
    """As epsilon falls, omega tends to 1 (figure 1)."""
    z, z0 = np.meshgrid(np.linspace(-1, 1, 21), np.linspace(-2, 2, 41))
    ranges = [np.ptp(omega(z, z0, epsilon)) for epsilon in (10, 1, 0.1, 0.01)]
    assert ranges == sorted(ranges, reverse=True)
    assert ranges[-1] < 0.02
    assert omega(z, z0, 1e-9) == pytest.approx(np.ones_like(z), abs=1e-6)


@given(z0=st.floats(-1, 1), keep=st.floats(0.5, 1))
def test_protecting_only_the_label_shrinks_by_a_factor(z0, keep):
    """It is 2q - 1, exactly at epsilon_z = inf and in the limit."""
    expected = (2 * keep - 1) * (logistic(np.array(z0)) - 0.5)
    for epsilon, tolerance in ((math.inf, 1e-12), (1e6, 1e-4)):
        found = noised_eta(logistic, z0, epsilon, keep) - 0.5
        assert float(found) == pytest.approx(float(expected), abs=tolerance)


def test_labels_of_real_reports_follow_eta_and_g():
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


def test_noise_misleads_where_the_curve_turns():
    """A narrow bump of class +1 in a sea of -1 is out-voted: g < 1/2 at its top."""

    def eta(z):
        return np.where(np.abs(z) < 0.1, 0.9, 0.1)

    assert pointwise_utility(eta, 0.0, 1.0) < 0.5
    assert pointwise_utility(eta, 0.0, 1000.0) > 0.5


def test_shapes_broadcast():
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
        (lambda: mrma.total_variation(0, 1.0), "d is 0"),
        (lambda: mrma.total_variation(1.5, 1.0), "d is 1.5"),
        (lambda: mrma.total_variation(2, 0.0), "epsilon_z is 0"),
        (lambda: mrma.total_variation(2, np.nan), "epsilon_z is nan"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    """Each message names the argument."""
    with pytest.raises(UserError, match=message):
        call()
