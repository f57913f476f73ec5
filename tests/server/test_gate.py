"""The gate: the majority where a decoded rule is expected to do no better."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from curvote.advise import prior
from curvote.curves.direction import Directions
from curvote.learning.directions import (
    NoisyMoments,
    ReportMean,
    SecondMoment,
    one_round_classifier,
    public_moment,
    solve_weights,
)
from curvote.learning.fallback import (
    CLEAR_MAJORITY,
    agreement_probability,
    expected_gain,
    solve_with_fallback,
)
from tests.noise import SEED

D = 4
GIVEN = Directions(D, 0.9)


def known(h_0: float, slope: float, noise: float) -> NoisyMoments:
    """Return what a mean of reports may say: h = (h_0, slope, 0, ...)."""
    public = public_moment(GIVEN)
    label = np.zeros((1, D + 1))
    label[0, :2] = h_0, slope
    second = SecondMoment(float(public[0]), np.zeros(D), np.diag(public[1:]))
    return NoisyMoments(label, noise, second)


@given(
    h_0=st.floats(-0.4, 0.4),
    slope=st.floats(-0.4, 0.4),
    noise=st.floats(1e-6, 0.05),
)
def test_it_is_the_rule_or_a_constant(h_0: float, slope: float, noise: float) -> None:
    """Of h_0's sign; without a clear majority it is always the rule; twice the same."""
    told = known(h_0, slope, noise)
    w = solve_with_fallback(told)
    assert (w == solve_with_fallback(told)).all()
    if (w == solve_weights(told)).all():
        return
    assert abs(h_0) > CLEAR_MAJORITY * np.sqrt(noise)
    assert (w[1:] == 0).all()
    assert np.sign(w[0]) == np.sign(h_0)


@pytest.mark.parametrize("side", [-1, 1])
def test_a_rare_class_without_a_signal_is_not_named(side: int) -> None:
    """Nor hidden slopes; a strong signal is kept, with equal classes and without."""
    r = np.sqrt(public_moment(GIVEN)[0])
    rare = 0.9 * r * side
    assert (solve_with_fallback(known(rare, 0.02, 1e-3))[1:] == 0).all()
    for h_0 in (0.0, 0.3 * r * side):
        kept = known(h_0, 0.25, 1e-3)
        assert (solve_with_fallback(kept) == solve_weights(kept)).all()
        assert expected_gain(kept, solve_weights(kept)) > 0.05


def test_the_expected_gain_is_that_of_draws_from_the_model() -> None:
    """Class balance, slopes, records and labels drawn a hundred thousand times."""
    told = known(0.15, 0.12, 1e-4)
    w, rng, n = solve_weights(told), np.random.default_rng(SEED), 100_000
    r, around = np.sqrt(told.second.corner), told.second.around[0, 0]
    b = (0.15 + 0.01 * rng.standard_normal(n)) / r
    k = ndtri((1 + b) / 2)
    deviation = np.sqrt(around) / r
    # g is 2 phi(k) times deviation times the correlation of score and first number.
    g = 0.12 / r
    density = np.exp(-(k**2) / 2) / np.sqrt(2 * np.pi)
    along = np.clip(g / (2 * density * deviation), -0.99, 0.99)
    x = rng.standard_normal(n)
    score = along * x + np.sqrt(1 - along**2) * rng.standard_normal(n) + k
    named = w[0] + deviation * w[1] * x > 0
    gain = np.mean(named == (score > 0)) - np.mean(score > 0)
    assert expected_gain(told, w) == pytest.approx(gain, abs=0.01)


@given(r=st.floats(-0.98, 0.98), h=st.floats(-3, 3), k=st.floats(-3, 3).filter(bool))
def test_two_rules_agree_as_often_as_theory_says(r: float, h: float, k: float) -> None:
    """The same formula as the planner's, of which the server knows nothing."""
    own = agreement_probability(np.array([r]), h, np.array([k]))
    assert own == pytest.approx(
        prior.same_side_probability(np.array([r]), -h, -k), abs=1e-6
    )


def test_where_it_names_the_majority_no_slope_is_left() -> None:
    """Of a hundred thousand reports that tell a larger class and nothing else."""
    total = ReportMean(np.r_[0.35, 0.02, np.zeros(D - 1)], 100_000)
    coef, intercept = one_round_classifier(total, GIVEN, 1.0, solve_with_fallback)
    assert (coef == 0).all()
    assert intercept > 0
