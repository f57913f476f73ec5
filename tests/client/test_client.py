"""The client's side: what it releases, what that costs, what it refuses to release."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvote.base.entropy import SeededEntropy, SystemEntropy
from curvote.base.errors import UserError
from curvote.base.privacy import Budget, label_budget_share
from curvote.client.report import Reporter, candidate_scores, draw_votes
from curvote.curves.basis import projection
from curvote.curves.encoding import Encoding
from curvote.wire.task import Task

shares = st.one_of(st.just("equal"), st.floats(0.01, 0.99))


class NoEntropy:
    """Fails when a word is asked for."""

    def words(self, n: int) -> np.ndarray:
        """Refuse."""
        raise AssertionError(f"{n} words were drawn")


@given(epsilon=st.floats(0.05, 20), d=st.integers(1, 30), share=shares)
def test_the_parts_of_a_report_never_add_up_to_more_than_its_budget(epsilon, d, share):
    """The exact losses of label and coordinates, from the integers that are used."""
    reporter = Reporter.build(d, epsilon, "laplace", share)
    loss = reporter.label.worst_log_ratio() + reporter.features.worst_log_ratio()
    assert loss <= epsilon * (1 + 1e-12)
    whole = Fraction(reporter.label.epsilon) + Fraction(reporter.features.epsilon)
    assert whole <= Fraction(epsilon)
    assert reporter.label.epsilon == pytest.approx(
        epsilon * label_budget_share(share, d)
    )


def test_a_report_that_forgets_to_split_its_budget_is_caught() -> None:
    """The broken twin: both parts at full epsilon cost twice the budget."""
    broken = Reporter(
        features=Reporter.build(4, 1.0, "laplace", 0.001).features,
        label=Reporter.build(4, 1.0, "laplace", 0.999).label,
    )
    loss = broken.label.worst_log_ratio() + broken.features.worst_log_ratio()
    assert loss > 1.9


def test_equal_share_gives_the_label_what_a_coordinate_gets() -> None:
    """1/(d+1) each: MRMA section 5.1."""
    reporter = Reporter.build(4, 2.0, "laplace", "equal")
    assert reporter.label.epsilon == pytest.approx(0.4)
    assert reporter.features.epsilon == pytest.approx(1.6)
    variance = reporter.features.variance(np.zeros((1, 4)))
    assert variance == pytest.approx(np.full((1, 4), 2 * (2 * 5 / 2.0) ** 2), rel=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_report_of_a_broken_record_releases_nothing(bad: float) -> None:
    """Not one word is drawn, neither for the numbers nor for the label."""
    reporter = Reporter.build(2, 1.0, "laplace", "equal")
    z = np.array([[0.1, bad]])
    with pytest.raises(UserError, match="Nothing was released"):
        reporter.release(z, np.ones(1), NoEntropy(), NoEntropy())
    with pytest.raises(UserError):
        reporter.release(np.zeros((1, 2)), np.array([0.5]), NoEntropy(), NoEntropy())
    with pytest.raises(UserError):
        reporter.release(np.zeros((2, 2)), np.ones(1), NoEntropy(), NoEntropy())


def test_a_report_has_the_shape_of_its_record_and_is_new_each_time() -> None:
    """System entropy: two reports of one record differ in every number."""
    reporter = Reporter.build(3, 1.0, "laplace", "equal")
    z, y = np.zeros((5, 3)), np.ones(5)
    first, labels = reporter.release(z, y, SystemEntropy(), SystemEntropy())
    again, _ = reporter.release(z, y, SystemEntropy(), SystemEntropy())
    assert first.shape == (5, 3)
    assert set(labels.tolist()) <= {-1.0, 1.0}
    assert not (first == again).any()


@pytest.mark.parametrize("right", [True, False])
def test_a_vote_tells_the_truth_with_its_stated_probability(right: bool) -> None:
    """Q = e^eps/(1 + e^eps), to 6 standard errors of 200,000 votes."""
    n, epsilon = 200_000, 0.7
    decision = np.full(n, 1.0)
    labels = np.full(n, 1.0 if right else -1.0)
    positive = draw_votes(decision, labels, epsilon, SeededEntropy(5)).mean()
    keep = np.exp(epsilon) / (1 + np.exp(epsilon))
    expected = keep if right else 1 - keep
    assert abs(positive - expected) < 6 * np.sqrt(keep * (1 - keep) / n)


def test_a_decision_of_zero_predicts_the_negative_class() -> None:
    """sign(0) = -1, as the server says it too."""
    labels = np.array([-1.0, 1.0])
    said = draw_votes(np.zeros(2), labels, 60.0, SeededEntropy(0))
    assert said.tolist() == [True, False]


def test_each_client_is_judged_by_its_one_classifier() -> None:
    """A loop over clients gives the same decisions."""
    rng = np.random.default_rng(0)
    x, coef, intercept = (
        rng.normal(size=(9, 3)),
        rng.normal(size=(4, 3)),
        np.arange(4.0),
    )
    judge = rng.integers(0, 4, 9)
    looped = [x[i] @ coef[b] + intercept[b] for i, b in enumerate(judge)]
    assert candidate_scores(x, coef, intercept, judge) == pytest.approx(looped)


def test_a_task_survives_json_and_any_change_changes_its_digest() -> None:
    """What a client reads is what the server wrote, down to the last bit."""
    onto = projection("bspline", 4, np.linspace(0, 1, 30))
    encoding = Encoding(onto, "tanh", {"centre": np.zeros(4), "scale": np.ones(4)})
    task = Task(encoding, ("no", "yes"), 1.5, "mrma", "report", mechanism="laplace")
    again = Task.from_json(json.loads(json.dumps(task.to_json())))
    curves = np.random.default_rng(1).normal(size=(3, 30))
    assert again.digest() == task.digest()
    assert np.array_equal(again.encoding.features(curves), encoding.features(curves))
    assert Reporter.for_task(again).label.epsilon == pytest.approx(0.3)
    assert replace(task, epsilon=1.6).digest() != task.digest()
    with pytest.raises(UserError, match="format"):
        Task.from_json(task.to_json() | {"format": 2})


@given(epsilon=st.floats(1e-3, 50), n=st.integers(1, 200), share=st.floats(0.01, 0.99))
def test_parts_of_a_budget_never_exceed_it(epsilon, n, share):
    """In exact arithmetic, not only after rounding."""
    budget = Budget(epsilon)
    assert Fraction(budget.each(n).epsilon) * n <= Fraction(epsilon)
    first, rest = budget.split(share)
    assert Fraction(first.epsilon) + Fraction(rest.epsilon) <= Fraction(epsilon)
    assert (first + rest).epsilon == pytest.approx(epsilon)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf")])
def test_a_budget_is_a_finite_positive_number(epsilon: float) -> None:
    """NaN fails as well."""
    with pytest.raises(UserError, match="epsilon"):
        Budget(epsilon)


@pytest.mark.parametrize("share", ["equals", 0.0, 1.0, float("nan")])
def test_a_label_share_is_equal_or_a_fraction(share: float | str) -> None:
    """Anything else is a UserError."""
    with pytest.raises(UserError, match="label_share"):
        label_budget_share(share, 4)
