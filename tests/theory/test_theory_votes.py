"""Votes: what is said of a utility's variance and of reversal is true of real votes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvote.advise import mrma
from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.client.report import draw_votes
from curvote.learning.votes import estimate_utility, reversal_mask, utility_variance

accuracies = st.floats(0, 1)
counts = st.integers(1, 400)
levels = st.floats(0.05, 8)


def cast(r: float, n: int, epsilon: float, runs: int) -> np.ndarray:
    """Return how many of ``n`` clients say "right", for each of ``runs``."""
    rng = np.random.default_rng(1)
    decision = np.where(rng.random(runs * n) < r, 1.0, -1.0)
    said = draw_votes(decision, np.ones(runs * n), epsilon, SeededEntropy(2))
    return said.reshape(runs, n).sum(axis=1)


@given(r=accuracies, n=counts, epsilon=levels)
def test_the_bound_is_the_exact_variance_at_its_largest(
    r: float, n: int, epsilon: float
) -> None:
    """No accuracy has a larger variance, and 1/2 has that of the bound."""
    q = mrma.keep_probability(epsilon)
    bound = mrma.bounded_variance(n, epsilon)
    assert utility_variance(r, n, q) <= bound * (1 + 1e-12)
    assert utility_variance(0.5, n, q) == pytest.approx(float(bound), rel=1e-9)


def test_the_bound_is_the_printed_one() -> None:
    """((e^eps + 1)/(e^eps - 1))^2 / (4 n), for arrays of n."""
    e = np.exp(0.7)
    expected = ((e + 1) / (e - 1)) ** 2 / (4 * np.array([1, 50]))
    assert mrma.bounded_variance([1, 50], 0.7) == pytest.approx(expected)


@pytest.mark.parametrize("r", [0.3, 0.7])
@pytest.mark.parametrize("n", [49, 50])
def test_reversal_is_right_as_often_as_said(r: float, n: int) -> None:
    """With real votes and the real rule, ties included, for even and odd n."""
    runs, epsilon = 20_000, 0.5
    positive = cast(r, n, epsilon, runs)
    flipped = reversal_mask(positive, np.full(runs, n))
    expected = float(mrma.reversal_right_exact(r, n, epsilon))
    error = np.sqrt(expected * (1 - expected) / runs)
    assert abs((flipped == (r < 0.5)).mean() - expected) < 5 * error
    keep = mrma.keep_probability(epsilon)
    variance = estimate_utility(positive, np.full(runs, n), keep).value.var()
    exact = float(utility_variance(r, n, keep))
    assert variance == pytest.approx(exact, rel=5 * np.sqrt(2 / runs))


def test_a_tie_helps_the_good_and_harms_the_bad() -> None:
    """A tie keeps, so at even n the odds of r and 1 - r differ by that of a tie."""
    good, bad = mrma.reversal_right_exact([0.7, 0.3], 50, 0.5)
    odd = mrma.reversal_right_exact([0.7, 0.3], 51, 0.5)
    assert good - bad > 0.05
    assert odd[0] == pytest.approx(odd[1])


@given(r=accuracies, n=counts, epsilon=levels)
def test_reversal_is_rather_right_than_wrong(r: float, n: int, epsilon: float) -> None:
    """At least even odds at odd n, in the normal form always; sure at r = 1/2."""
    odd = 2 * n + 1
    assert mrma.reversal_right_exact(r, odd, epsilon) >= 0.5 - 1e-9
    assert mrma.reversal_right_normal(r, n, epsilon) >= 0.5
    assert mrma.reversal_right_exact(0.5, n, epsilon) == 1


def test_the_normal_form_knows_the_noise_of_votes_and_the_printed_one_does_not() -> (
    None
):
    """In print .999 for every epsilon (n = 50, r = .7), in truth .56 to .99."""
    assert mrma.reversal_right_printed(0.7, 50) == pytest.approx(0.999, abs=5e-4)
    for epsilon, right in ((0.1, 0.56), (0.5, 0.76), (1, 0.91), (2, 0.99)):
        normal = mrma.reversal_right_normal(0.7, 50, epsilon)
        assert normal == pytest.approx(right, abs=5e-3)
        assert normal < mrma.reversal_right_printed(0.7, 50)
    without_noise = mrma.reversal_right_normal(0.7, 50, 50.0)
    assert without_noise == pytest.approx(float(mrma.reversal_right_printed(0.7, 50)))


def test_the_normal_form_is_near_the_exact_one() -> None:
    """Within .002 where thousands vote and a tie is rare."""
    r = np.linspace(0.4, 0.6, 20)
    exact = mrma.reversal_right_exact(r, 5001, 1.0)
    assert np.abs(exact - mrma.reversal_right_normal(r, 5001, 1.0)).max() < 2e-3


def test_a_sure_classifier_without_noise_is_never_mistaken() -> None:
    """At r = 0 and 1 the printed form divides by no variance: probability 1."""
    assert (mrma.reversal_right_printed([0.0, 1.0], 9) == 1).all()


@pytest.mark.parametrize(
    ("r", "n", "epsilon", "message"),
    [
        (1.2, 10, 1.0, "accuracy must lie"),
        (0.5, 0, 1.0, "at least 1"),
        (0.5, 2.5, 1.0, "whole"),
        (0.5, 10, 0.0, "epsilon is 0"),
        (float("nan"), 10, 1.0, "nan"),
    ],
)
def test_what_is_no_accuracy_or_count_is_refused(
    r: float, n: int, epsilon: float, message: str
) -> None:
    """The message names what was given."""
    with pytest.raises(UserError, match=message):
        mrma.reversal_right_exact(r, n, epsilon)
