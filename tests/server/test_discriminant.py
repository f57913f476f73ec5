"""Several classes from noised moments: Fisher's rule where there is no noise."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from curvote.base.entropy import SeededEntropy
from curvote.client.report import DirectionReporter
from curvote.curves.direction import Directions, class_codes
from curvote.curves.encoding import predict_indices
from curvote.learning.directions import (
    Line,
    ReportMean,
    estimate_whitening,
    one_round_classifier,
    two_round_classifier,
)

Array = NDArray[np.float64]
Data = tuple[Array, NDArray[np.int64]]
CLASSES, D = 5, 4
GIVEN = Directions(D, 0.9, 0.8, n_classes=CLASSES)


def gaussians(n: int, shares: Array | None = None, seed: int = 3) -> Data:
    """Return z and labels: five normal classes that share a slanted scatter."""
    rng = np.random.default_rng(seed)
    means = np.random.default_rng(7).standard_normal((CLASSES, D)) * 1.2
    labels = rng.choice(CLASSES, size=n, p=shares)
    slant = np.eye(D) + 0.4 * np.ones((D, D))
    x = means[labels] + rng.standard_normal((n, D)) @ slant
    return (x - x.mean(axis=0)) / x.std(axis=0), labels


def error(line: Line, data: Data) -> float:
    """Return how often a classifier is wrong."""
    z, labels = data
    return float(np.mean(predict_indices(z @ line[0].T + line[1]) != labels))


def learnt(
    data: Data,
    epsilon: float,
    given: Directions = GIVEN,
    balance: Array | None = None,
) -> Line:
    """Return what one round of reports says, and the shares where they are public."""
    z, labels = data
    reporter = DirectionReporter.build(given, epsilon)
    own = class_codes(labels, given.n_classes)
    sent = reporter.release(z, own, SeededEntropy(11), study=True)
    mean = ReportMean.from_reports(sent)
    return one_round_classifier(mean, given, epsilon, balance)


@pytest.mark.parametrize("n_classes", [2, CLASSES])
def test_public_shares_keep_noise_from_the_larger_class(n_classes: int) -> None:
    """Where it hides all, they err as the majority; where nothing, they do no harm."""
    shares = np.r_[0.6, np.full(n_classes - 1, 0.4 / (n_classes - 1))]
    given = Directions(D, 0.9, 1.0, n_classes=n_classes)
    z, labels = gaussians(6000, shares if n_classes == CLASSES else None)
    if n_classes == 2:
        labels = (z[:, 0] + np.random.default_rng(1).standard_normal(6000) < -0.4) * 1
    data = z, labels
    counts = np.bincount(labels) / len(labels)
    few = z[:500], labels[:500]
    blind = [
        error(learnt(few, 0.05, given, balance), data) for balance in (counts, None)
    ]
    assert blind[0] <= 1 - counts.max() + 0.01 < blind[1]
    seeing = [
        error(learnt(data, 40, given, balance), data) for balance in (counts, None)
    ]
    assert seeing[0] <= seeing[1] + 0.01


@pytest.mark.parametrize("shares", [None, np.array([0.4, 0.3, 0.1, 0.1, 0.1])])
def test_without_noise_it_is_nearly_fishers_rule(shares: Array | None) -> None:
    """At epsilon 60 it errs at most 2 points more often than Fisher's rule."""
    data = gaussians(20_000, shares)
    best = LinearDiscriminantAnalysis().fit(*data).score(*data)
    assert error(learnt(data, 60), data) <= 1 - best + 0.02


def test_a_class_in_the_middle_is_not_hidden() -> None:
    """Five classes on a line: least squares would never name the second or fourth."""
    rng = np.random.default_rng(2)
    labels = rng.integers(CLASSES, size=30_000)
    x = labels[:, None] * 3.0 + rng.standard_normal((len(labels), 1))
    data = (x - x.mean()) / x.std(), labels
    given = Directions(1, 0.9, 0.8, n_classes=CLASSES)
    line = learnt(data, 40, given)
    named = predict_indices(data[0] @ line[0].T + line[1])
    recalls = [np.mean(named[labels == k] == k) for k in range(CLASSES)]
    assert min(recalls) > 0.6


@pytest.mark.parametrize("epsilon", [0.05, 1, 3])
def test_it_errs_less_with_more_budget_and_never_much_more_than_guessing(
    epsilon: float,
) -> None:
    """Noise alone leaves four fifths wrong; at epsilon 3 most are right."""
    found = error(learnt(gaussians(10_000), epsilon), gaussians(10_000, seed=4))
    assert found < {0.05: 0.86, 1: 0.6, 3: 0.45}[epsilon]


def test_two_rounds_read_several_classes() -> None:
    """What a first round whitened is told in the coordinates of z."""
    (z, labels), epsilon = gaussians(20_000), 20
    own = class_codes(labels, CLASSES)
    first, second = z[:6_000], z[6_000:]
    noise = SeededEntropy(13)
    reports = DirectionReporter.build(GIVEN, epsilon)
    start = ReportMean.from_reports(
        reports.release(first, own[:6_000], noise, study=True)
    )
    made = estimate_whitening(start, GIVEN, epsilon)
    later = DirectionReporter.build(GIVEN.whitened, epsilon)
    sent = later.release(made.apply(second), own[6_000:], noise, study=True)
    line = two_round_classifier(
        (start, ReportMean.from_reports(sent)), made, GIVEN, epsilon
    )
    best = LinearDiscriminantAnalysis().fit(z, labels).score(z, labels)
    assert error(line, (z, labels)) <= 1 - best + 0.04


def test_a_rare_class_keeps_a_share() -> None:
    """However few reports name a class, its score is finite."""
    shares = np.array([0.9, 0.04, 0.03, 0.02, 0.01])
    line = learnt(gaussians(3_000, shares), 1)
    assert np.isfinite(line[0]).all()
    assert np.isfinite(line[1]).all()
