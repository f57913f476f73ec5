"""Reports and volunteers as one classifier: its limits, and the weights of both."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from curvote.curves.direction import Directions, class_codes
from curvote.curves.encoding import predict_indices
from curvote.learning.directions import (
    ReportMean,
    estimate_moments,
    one_round_classifier,
)
from curvote.learning.volunteers import (
    VolunteerRecords,
    class_scores,
    joint_classifier,
    pool_label_moments,
    pool_second_moments,
    ridge_logistic,
)
from curvote.messages.arms import make_directions
from curvote.systems.direct.system import volunteer_worth

Array = NDArray[np.float64]
D, N = 4, 50
ARMS = pytest.mark.parametrize("arm", ["mean", "joint"])


def records(n: int, seed: int, n_classes: int = 2) -> tuple[Array, NDArray[np.int64]]:
    """Return z (n, D) and places of classes that depend on the first numbers."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, D))
    noised = z[:, : n_classes - 1] + 0.5 * rng.standard_normal((n, n_classes - 1))
    corners = class_codes(np.arange(n_classes), n_classes)
    return z, (noised @ corners.T).argmax(axis=1)


def reports(
    arm: str, n: int, seed: int = 3, n_classes: int = 2
) -> tuple[ReportMean, Directions]:
    """Return the mean of ``n`` reports without noise, said to have it all the same."""
    given = make_directions(arm, D, "standard", "auto", n_classes)
    z, places = records(5000, seed, n_classes)
    return ReportMean(
        given.vectors(z, class_codes(places, n_classes)).mean(axis=0), n
    ), given


def direction(line: tuple[Array, float]) -> Array:
    """Return a rule up to its scale."""
    found = np.r_[line[0], line[1]]
    return found / np.linalg.norm(found)


@ARMS
def test_without_volunteers_it_is_the_reports(arm: str) -> None:
    """To the last bit."""
    total, given = reports(arm, 1000)
    nobody = VolunteerRecords.from_records(
        given, np.zeros((0, D)), np.zeros(0, dtype=np.int64)
    )
    one, other = (
        joint_classifier(total, given, 1.0, nobody),
        one_round_classifier(total, given, 1.0),
    )
    assert np.array_equal(one[0], other[0])
    assert one[1] == other[1]


@ARMS
def test_volunteers_of_no_weight_leave_the_reports(arm: str) -> None:
    """Where reports are exact beside a few volunteers, the rule is theirs."""
    total, given = reports(arm, 10**9)
    line = joint_classifier(
        total, given, 5.0, VolunteerRecords.from_records(given, *records(5, 1))
    )
    exact = direction(one_round_classifier(total, given, 5.0))
    if arm == "joint":
        assert direction(line) @ exact > 1 - 1e-6
    assert direction(line) @ exact > 1 - 1e-2


@ARMS
def test_reports_of_no_weight_leave_the_volunteers(arm: str) -> None:
    """As epsilon goes to 0 the join becomes their own regression."""
    total, given = reports(arm, 1000)
    z, places = records(N, 1)
    line = joint_classifier(
        total, given, 1e-6, VolunteerRecords.from_records(given, z, places)
    )
    alone = ridge_logistic(z, places)
    assert np.allclose(line[0], alone[0], rtol=1e-2, atol=1e-3)
    assert line[1] == pytest.approx(alone[1], abs=1e-3)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_moments_are_weighted_by_the_inverse_of_their_variance(n_classes: int) -> None:
    """The pooled variance is that of two independent measurements."""
    total, given = reports("mean", 400, n_classes=n_classes)
    public = VolunteerRecords.from_records(given, *records(N, 1, n_classes))
    alone = estimate_moments(total, given, 1.0)
    second = pool_second_moments(total, given, 1.0, public.units)
    both = pool_label_moments(alone, public, second)
    weights = 1 / alone.noise, 1 / public.noise
    assert both.noise == pytest.approx(1 / sum(weights))
    label = (weights[0] * alone.label + weights[1] * public.label) / sum(weights)
    assert np.allclose(both.label, label)
    assert public.noise == pytest.approx(1 / ((n_classes - 1) * given.p * N))


def test_labelled_records_are_worth_what_the_formula_says() -> None:
    """Reports of N epsilon^2 = 6 p n_v have the noise of n_v volunteers, nearly."""
    total, given = reports("mean", round(volunteer_worth(N, D) / 0.5**2))
    noise = estimate_moments(total, given, 0.5).noise
    assert noise * given.p * N == pytest.approx(1, rel=0.12)


def test_reports_of_another_sign_are_outvoted_where_they_are_few() -> None:
    """Each part wins where its variance is the smaller one by far."""
    total, given = reports("mean", 1000)
    opposite = ReportMean(-total.mean, total.n)
    z, places = records(N, 1)
    public, alone = (
        VolunteerRecords.from_records(given, z, places),
        direction(ridge_logistic(z, places)),
    )
    assert direction(joint_classifier(opposite, given, 0.05, public)) @ alone > 0.9
    assert direction(joint_classifier(opposite, given, 20.0, public)) @ alone < -0.9


@pytest.mark.parametrize("n_classes", [2, 5])
def test_both_beat_either(n_classes: int) -> None:
    """At equal weights the join errs less often than each part, on average."""
    test = records(4000, 99, n_classes)
    errors = []
    for seed in range(12):
        total, given = reports("mean", 1500, seed + 10, n_classes)
        noise = total.noise(1.0)
        rng = np.random.default_rng(seed)
        noised = total.mean + np.sqrt(noise) * rng.standard_normal(given.size)
        total, mine = ReportMean(noised, total.n), records(N, seed, n_classes)
        lines = (
            joint_classifier(
                total, given, 1.0, VolunteerRecords.from_records(given, *mine)
            ),
            one_round_classifier(total, given, 1.0),
            ridge_logistic(*mine, n_classes),
        )
        errors.append([error(line, *test) for line in lines])
    both, by_reports, by_volunteers = np.mean(errors, axis=0)
    assert both < by_reports
    assert both < by_volunteers + 0.01


def error(line: tuple[Array, Array], z: Array, places: NDArray[np.int64]) -> float:
    """Return the misclassification of a line, or of a line for each class."""
    scores = z @ np.asarray(line[0]).T + line[1]
    told = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
    return float(np.mean(told != places))


def test_volunteers_of_one_class_name_it() -> None:
    """A constant, finite, whatever their records are."""
    z = np.random.default_rng(0).standard_normal((6, D))
    coef, intercept = ridge_logistic(z, np.ones(6, dtype=np.int64))
    assert not coef.any()
    assert intercept > 0
    scores = ridge_logistic(z, np.full(6, 3), 5)
    assert (z @ scores[0].T + scores[1]).argmax(axis=1).tolist() == [3] * 6


def test_a_class_without_volunteers_is_never_named() -> None:
    """Neither by one line for two classes of several, nor by many."""
    z, places = records(60, 5, 3)
    for kept in ([0, 2], [0, 1, 2]):
        mine = np.isin(places, kept)
        coef, intercept = ridge_logistic(z[mine], places[mine], 4)
        told = (z @ coef.T + intercept).argmax(axis=1)
        assert set(told) <= set(kept)
        assert np.mean(told[mine] == places[mine]) > 0.6


@pytest.mark.parametrize("there", [[2], [0, 3], [3, 1], [0, 1, 2], [0, 1, 2, 3]])
def test_scores_name_what_scikit_learn_names(there: list[int]) -> None:
    """A class that no record has never wins; one alone always does."""
    rng = np.random.default_rng(5)
    places = np.repeat(there, 40)
    z = rng.normal(size=(len(places), 3)) + 2 * np.eye(4)[places][:, :3]
    coef, intercept = class_scores(LinearDiscriminantAnalysis(), z, places, 4)
    assert coef.shape == (4, 3)
    assert np.isfinite(coef).all()
    assert np.isfinite(intercept).all()
    named = predict_indices(z @ coef.T + intercept)
    if len(there) == 1:
        assert (named == there[0]).all()
    else:
        own = LinearDiscriminantAnalysis().fit(z, places).predict(z)
        assert (named == own).all()


def test_volunteers_of_several_classes_have_a_score_for_each() -> None:
    """Of two they keep the one line that they had."""
    rng = np.random.default_rng(6)
    places = np.arange(60) % 3
    z = rng.normal(size=(60, 2)) + 4 * np.eye(3)[places][:, :2]
    coef, intercept = ridge_logistic(z, places, 3)
    assert np.mean(predict_indices(z @ coef.T + intercept) == places) > 0.9
    line, constant = ridge_logistic(z, places % 2)
    assert line.shape == (2,)
    assert np.ndim(constant) == 0
