"""Engines of discriminants: linear scores, and quadratic ones in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.validate import FloatArray
from curvote.systems.utility.method.engines.base import Question
from curvote.systems.utility.method.engines.fronts import Front, split_front
from curvote.systems.utility.method.engines.scores.engine import ScoreEngine
from curvote.systems.utility.method.engines.scores.forms import Scores


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Two classes by weights (d,) and an intercept: the second iff the score > 0.

    For classifiers that are no scikit-learn estimators: curves' coefficients, say.
    """

    weights: FloatArray
    intercept: float
    classes: tuple[Any, Any] = (0, 1)

    @property
    def classes_(self) -> NDArray[Any]:
        """The two classes, as given."""
        return np.asarray(self.classes)

    @property
    def coef_(self) -> FloatArray:
        """The weights, (1, d)."""
        return np.asarray(self.weights, dtype=np.float64)[None]

    @property
    def intercept_(self) -> FloatArray:
        """The intercept, (1,)."""
        return np.array([self.intercept], dtype=np.float64)

    def decision_function(self, X: FloatArray) -> FloatArray:
        """Return the score of each row, (n,)."""
        return np.asarray(X @ self.coef_[0] + self.intercept)

    def predict(self, X: FloatArray) -> NDArray[Any]:
        """Return the class of each row, (n,)."""
        positive = self.decision_function(X) > 0
        return np.asarray(self.classes_[positive.astype(int)])


@dataclass(frozen=True)
class LinearScores:
    """Linear scores: features @ ``weights`` (D', K) + ``constants`` (K,)."""

    weights: FloatArray
    constants: FloatArray

    def scores(self, question: Question, front: Front) -> Scores:
        """Return the scores as functions of the sensitive values."""
        slopes = front.slopes @ self.weights
        at_records = front.features(question.records) @ self.weights + self.constants
        constant = at_records - question.values @ slopes
        square = np.zeros((len(slopes), *slopes.shape))
        return Scores(constant, slopes[None], square)


class Linear(ScoreEngine):
    """Engine of estimators with ``coef_`` and ``intercept_``.

    Naive Bayes on counts, and the nearest of centroids or centres of clusters, are
    linear in the features as well. Two classes with any number of sensitive features;
    more classes with two of those.
    """

    name = "linear"

    def scores(self, question: Question) -> Scores | str:
        """Return the scores around the records, or why there are none."""
        estimator, front = split_front(question)
        lines = _read_linear(estimator)
        if lines is None:
            return f"{type(estimator).__name__} is not linear."
        if isinstance(front, str):
            return front
        scores = lines.scores(question, front)
        noised = len(scores.active_values())
        if scores.classes > 2 and noised > 2:
            return (
                f"A linear model of {scores.classes} classes is exact for two sensitive"
                f" features; here are {noised}."
            )
        return scores


_WEIGHT_ATTRIBUTES = ("coef_", "intercept_", "classes_", "decision_function")


def _read_linear(estimator: Any) -> LinearScores | None:
    """Return the estimator's linear scores, None if it has none."""
    if all(hasattr(estimator, name) for name in _WEIGHT_ATTRIBUTES):
        weights = np.atleast_2d(np.asarray(estimator.coef_, dtype=np.float64))
        classes = len(estimator.classes_)
        constants = np.broadcast_to(estimator.intercept_, len(weights))
        if classes == 2 and len(weights) == 1:
            nothing = np.zeros_like(weights)
            return LinearScores(
                np.vstack([nothing, weights]).T, np.array([0.0, constants[0]])
            )
        return LinearScores(weights.T, constants) if len(weights) == classes else None
    if hasattr(estimator, "feature_log_prob_") and not hasattr(estimator, "binarize"):
        return _scores_of_counts(estimator)
    if hasattr(estimator, "centroids_"):
        priors = np.asarray(estimator.class_prior_)
        if estimator.metric != "euclidean":
            return None
        if np.isclose(priors, 1 / len(priors)).all():
            return _scores_of_nearest(estimator.centroids_)
        within = estimator.within_class_std_dev_
        scale = np.where(within != 0, within, 1.0)
        near = _scores_of_nearest(estimator.centroids_ / scale)
        return LinearScores(
            near.weights / scale[:, None], near.constants + np.log(priors)
        )
    if hasattr(estimator, "cluster_centers_"):
        return _scores_of_nearest(estimator.cluster_centers_)
    return None


def _scores_of_counts(estimator: Any) -> LinearScores:
    """Return the scores of naive Bayes on counts."""
    complement = hasattr(estimator, "norm")
    priors = np.asarray(estimator.class_log_prior_, dtype=np.float64)
    weights = estimator.feature_log_prob_.T
    return LinearScores(weights, np.zeros_like(priors) if complement else priors)


def _scores_of_nearest(centres: FloatArray) -> LinearScores:
    """Return the scores of the nearest centre: -|x - centre|^2 / 2 up to |x|^2."""
    return LinearScores(centres.T, -(centres**2).sum(axis=1) / 2)


# Along one of two values each pair of scores crosses at most twice.
MOST_FEATURES = 2


@dataclass(frozen=True)
class Gaussians:
    """Normal laws of K classes: means, precisions and shares."""

    means: FloatArray
    precisions: FloatArray
    shares: FloatArray

    def scores(self, question: Question, front: Front) -> Scores:
        """Return ln(share x density) around the records, up to a constant."""
        at_zero = front.features(question.records) - question.values @ front.slopes
        pulled = np.einsum("kde,ke->kd", self.precisions, self.means)
        curved = np.einsum("nd,kde->nke", at_zero, self.precisions)
        _, volumes = np.linalg.slogdet(self.precisions)
        distances = (self.means * pulled).sum(axis=1)
        constant = (
            np.asarray(np.log(self.shares) + (volumes - distances) / 2)
            + at_zero @ pulled.T
        )
        constant -= np.einsum("nke,ne->nk", curved, at_zero) / 2
        linear = np.einsum("sd,nkd->nsk", front.slopes, pulled - curved)
        half = front.slopes @ self.precisions / 2 @ front.slopes.T
        square = -np.moveaxis(half + np.swapaxes(half, 1, 2), 0, 2) / 2
        return Scores(constant, linear, square)


class ClosedForm(ScoreEngine):
    """Engine of quadratic discriminants, Gaussian naive Bayes and mixtures.

    Exact for up to two sensitive features.
    """

    name = "closed_form"

    def scores(self, question: Question) -> Scores | str:
        """Return the scores around the records, or why there are none."""
        estimator, front = split_front(question)
        laws = _read_gaussians(estimator)
        if laws is None:
            return f"{type(estimator).__name__} is no discriminant of normal laws."
        if isinstance(front, str):
            return front
        scores = laws.scores(question, front)
        if (noised := len(scores.active_values())) > MOST_FEATURES:
            return (
                f"Quadratic scores are exact for two sensitive features; here are"
                f" {noised}."
            )
        return scores


def _read_gaussians(estimator: Any) -> Gaussians | None:
    """Return the estimator's normal laws, None if it has none."""
    if hasattr(estimator, "rotations_"):
        return _gaussians_of_rotations(estimator)
    if hasattr(estimator, "var_") and hasattr(estimator, "theta_"):
        spread = np.array([np.diag(1 / row) for row in estimator.var_])
        return Gaussians(estimator.theta_, spread, estimator.class_prior_)
    # The variational mixture's components are no normal laws.
    if hasattr(estimator, "precisions_") and not hasattr(estimator, "mean_prior_"):
        return Gaussians(
            estimator.means_, _precision_matrices(estimator), estimator.weights_
        )
    return None


def _gaussians_of_rotations(estimator: Any) -> Gaussians:
    """Return the normal laws of a quadratic discriminant."""
    pairs = zip(estimator.rotations_, estimator.scalings_, strict=True)
    spread = np.array([turned / size @ turned.T for turned, size in pairs])
    return Gaussians(estimator.means_, spread, estimator.priors_)


def _precision_matrices(mixture: Any) -> FloatArray:
    """Return the precisions of a mixture as matrices, (K, D', D')."""
    precisions = np.asarray(mixture.precisions_, dtype=np.float64)
    classes, features = mixture.means_.shape
    match mixture.covariance_type:
        case "tied":
            return np.tile(precisions, (classes, 1, 1))
        case "diag":
            return np.array([np.diag(row) for row in precisions])
        case "spherical":
            return precisions[:, None, None] * np.eye(features)
    return precisions
