from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

from curvote.base.errors import UserError
from curvote.curves.encoding import Linear
from curvote.learning.votes import (
    WEIGHTS,
    WHEN_NONE_PASS,
    average_classifiers,
    averaging_weights,
    estimate_utility,
    reversal_mask,
    reversed_utility,
)

FloatArray = NDArray[np.float64]

votes = st.integers(1, 80)
accuracies = st.floats(0, 1, allow_subnormal=False)  # scipy overflows there
keeps = st.floats(0.51, 1)
utilities = st.lists(st.floats(-3, 3), min_size=1, max_size=30)
cutoffs = st.floats(0.5, 1, exclude_max=True)


def law(n: int, r: float, q: float) -> tuple[FloatArray, FloatArray]:
    """Return every possible count of n votes and its exact probability."""
    counts = np.arange(n + 1.0)
    return counts, np.asarray(binom.pmf(counts, n, q * r + (1 - q) * (1 - r)))


def utility_variance(r: Any, n: Any, q: float) -> FloatArray:
    """Return the exact variance of an estimate whose true accuracy is ``r``."""
    p = q * np.asarray(r) + (1 - q) * (1 - np.asarray(r))
    return np.asarray(p * (1 - p) / (n * (2 * q - 1) ** 2))


# ------------------------------------------------------------------------- utility
@given(votes, accuracies, keeps)
def test_the_estimate_is_unbiased(n: int, r: float, q: float) -> None:
    """Summed over every possible vote count, the mean estimate is the accuracy."""
    counts, probability = law(n, r, q)
    found = estimate_utility(counts, np.full(n + 1, n), q).value
    assert probability @ found == pytest.approx(r, abs=1e-9 / (2 * q - 1))


@given(votes, accuracies, keeps)
def test_the_variance_is_exact(n: int, r: float, q: float) -> None:
    """Summed over every possible vote count, the squared error is the variance."""
    counts, probability = law(n, r, q)
    error = estimate_utility(counts, np.full(n + 1, n), q).value - r
    expected = float(utility_variance(r, n, q))
    assert probability @ error**2 == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(votes, keeps, st.data())
def test_the_standard_error_plugs_in_the_estimate(
    n: int, q: float, data: st.DataObject
) -> None:
    """The standard error is the exact one of the accuracy that was estimated."""
    count = data.draw(st.integers(0, n))
    found = estimate_utility([count], [n], q)
    if 0 <= found.value[0] <= 1:
        expected = np.sqrt(utility_variance(found.value, n, q))
        np.testing.assert_allclose(found.standard_error, expected, atol=1e-9)


def test_estimates_are_not_clipped() -> None:
    """Few noisy votes may put the estimate outside [0, 1]; clipping would bias it."""
    found = estimate_utility([0, 5, 10], [10, 10, 10], 0.75)
    np.testing.assert_allclose(found.value, [-0.5, 0.5, 1.5])
    np.testing.assert_allclose(found.standard_error, [0, np.sqrt(0.025) / 0.5, 0])


@pytest.mark.parametrize(
    ("positive", "n", "q", "message"),
    [
        ([3, 11], [10, 10], 0.7, "classifier 1 has 11 positive of 10"),
        ([-1], [10], 0.7, "classifier 0 has -1"),
        ([0], [0], 0.7, "of 0 votes"),
        ([1.5], [10], 0.7, "must be whole"),
        ([1, 2], [10], 0.7, r"positive has shape \(2,\)"),
        ([1], [10], 0.5, "q is 0.5"),
        ([1], [10], float("nan"), "q is nan"),
    ],
)
def test_impossible_counts_are_refused(
    positive: Any, n: Any, q: float, message: str
) -> None:
    """Counts must be whole and within 0..n; a vote kept half the time says nothing."""
    with pytest.raises(UserError, match=message):
        estimate_utility(positive, n, q)


# ------------------------------------------------------------------------ reversal
def test_exactly_fewer_than_half_right_is_reversed() -> None:
    """Reversed is who has fewer right than wrong votes; a tie keeps the classifier."""
    for n in range(1, 60):
        right = np.arange(n + 1)
        found = reversal_mask(right, np.full(n + 1, n))
        np.testing.assert_array_equal(found, right < n - right)


def test_reversal_succeeds_as_often_as_the_binomial_says() -> None:
    """50 votes at epsilon 0.5 keep a classifier of accuracy 0.7 in 80 % of cases."""
    q = 1 / (1 + np.exp(-0.5))
    counts, probability = law(50, 0.7, q)
    kept = probability @ ~reversal_mask(counts, np.full(51, 50))
    assert kept == pytest.approx(0.80, abs=0.005)


@given(votes, keeps, st.data())
def test_reversal_never_leaves_a_utility_below_half(
    n: int, q: float, data: st.DataObject
) -> None:
    """After reversal the estimated utility is max(u, 1 - u), up to rounding."""
    count = data.draw(st.integers(0, n))
    before = estimate_utility([count], [n], q).value
    after = reversed_utility(before, reversal_mask([count], [n]))
    np.testing.assert_allclose(after, np.maximum(before, 1 - before), atol=1e-9)


def test_masks_of_another_length_are_refused() -> None:
    """Utilities and reversals must belong to the same classifiers."""
    with pytest.raises(UserError, match="utility has shape"):
        reversed_utility([0.4, 0.6], [True])


# ----------------------------------------------------------------------- averaging
@given(utilities, cutoffs, st.sampled_from(WHEN_NONE_PASS), st.sampled_from(WEIGHTS))
def test_weights_are_a_distribution(
    utility: list[float], cutoff: float, when_none_pass: str, form: str
) -> None:
    """Weights are finite, at least 0 and sum to 1; a better one never weighs less."""
    found, none_passed = averaging_weights(utility, cutoff, when_none_pass, form)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1)
    assert none_passed == (max(utility) <= cutoff)
    assert (np.diff(found[np.argsort(utility, kind="stable")]) >= 0).all() or (
        none_passed and when_none_pass == "best"
    )


@given(utilities, cutoffs)
def test_weights_are_the_excess_over_the_cutoff(
    utility: list[float], cutoff: float
) -> None:
    """Who passes weighs in proportion to u - cutoff, the others nothing."""
    found, none_passed = averaging_weights(utility, cutoff, "uniform")
    if not none_passed:
        excess = np.maximum(np.array(utility) - cutoff, 0)
        np.testing.assert_allclose(found, excess / excess.sum())


@given(utilities, cutoffs)
def test_published_weights_are_the_distance_from_half(
    utility: list[float], cutoff: float
) -> None:
    """Who passes weighs |u - 1/2| of the clipped utility, the others nothing."""
    found, none_passed = averaging_weights(utility, cutoff, "uniform", "distance")
    if not none_passed:
        clipped = np.clip(utility, 0, 1)
        expected = np.where(np.array(utility) > cutoff, np.abs(clipped - 0.5), 0)
        np.testing.assert_allclose(found, expected / expected.sum())


def test_the_two_forms_of_weights_differ() -> None:
    """By hand: r0 = .7; .8 and 1.4 weigh 1 : 7 by excess, 3 : 5 by distance."""
    utility = [0.8, 0.3, 1.4]
    np.testing.assert_allclose(
        averaging_weights(utility, 0.7, "soft")[0], [1 / 8, 0, 7 / 8]
    )
    found, _ = averaging_weights(utility, 0.7, "soft", "distance")
    np.testing.assert_allclose(found, [3 / 8, 0, 5 / 8])


def test_unknown_weights_are_refused() -> None:
    """A form of weights that does not exist is a user error with a suggestion."""
    with pytest.raises(UserError, match="Did you mean 'distance'"):
        averaging_weights([0.6], 0.7, "soft", "distances")


def test_when_none_passes_the_choice_decides() -> None:
    """Soft weighs the excess over 1/2, best takes one, uniform takes all."""
    utility = [0.6, 0.4, 0.7, 0.7]
    expected: dict[str, list[float]] = {
        "soft": [0.2, 0, 0.4, 0.4],
        "best": [0, 0, 1, 0],
        "uniform": [0.25] * 4,
    }
    assert set(expected) == set(WHEN_NONE_PASS)
    for name, row in expected.items():
        found, none_passed = averaging_weights(utility, 0.8, name)
        np.testing.assert_allclose(found, row)
        assert none_passed


def test_weights_exist_even_if_all_are_worthless() -> None:
    """Soft weights that are all zero become uniform: never NaN."""
    found, none_passed = averaging_weights([0.5, 0.5, 0.2], 0.5, "soft")
    np.testing.assert_allclose(found, 1 / 3)
    assert none_passed


def test_extreme_utilities_cannot_overflow() -> None:
    """Even sums beyond the largest number give a distribution."""
    found, _ = averaging_weights([1e308, 1e308, 1e308], 0.8, "soft")
    np.testing.assert_allclose(found, 1 / 3)


@pytest.mark.parametrize(
    ("utility", "cutoff", "when", "message"),
    [
        ([0.6], 1.0, "soft", "cutoff is 1.0"),
        ([0.6], 0.49, "soft", "cutoff is 0.49"),
        ([0.6], float("nan"), "soft", "cutoff is nan"),
        ([0.6], 0.8, "softly", "Did you mean 'soft'"),
        ([np.nan], 0.8, "soft", "NaN"),
        ([], 0.8, "soft", "not empty"),
    ],
)
def test_wrong_rules_are_refused(
    utility: list[float], cutoff: float, when: str, message: str
) -> None:
    """A cutoff outside [0.5, 1), an unknown rule or no utilities are user errors."""
    with pytest.raises(UserError, match=message):
        averaging_weights(utility, cutoff, when)


def test_the_average_decides_like_the_weighted_decisions() -> None:
    """Averaging coefficients is averaging decision functions (MRMA, equation 11)."""
    rng = np.random.default_rng(2)
    coef, intercept = rng.normal(size=(7, 4)), rng.normal(size=7)
    share = rng.dirichlet(np.ones(7))
    features = rng.normal(size=(20, 4))
    each = [
        Linear(c, b, "rescaled").decision(features)
        for c, b in zip(coef, intercept, strict=True)
    ]
    whole = Linear(*average_classifiers(coef, intercept, share), "rescaled")
    np.testing.assert_allclose(whole.decision(features), share @ np.array(each))


def test_lists_of_different_length_are_refused() -> None:
    """Coefficients, intercepts and weights must belong to the same classifiers."""
    with pytest.raises(UserError, match=r"must be \[B, d\]"):
        average_classifiers(np.ones((3, 2)), np.ones(3), np.ones(2) / 2)
