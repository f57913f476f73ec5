"""Gaussian discriminants in closed form (QCU, appendix C.1): quadratic scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from curvote.utility.engines.base import Question
from curvote.utility.engines.fronts import Front, split_front
from curvote.utility.engines.scores.engine import ScoreEngine
from curvote.utility.engines.scores.forms import Scores
from curvote.validate import FloatArray

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
        constant = self._constant_part(pulled) + at_zero @ pulled.T
        constant -= np.einsum("nke,ne->nk", curved, at_zero) / 2
        linear = np.einsum("sd,nkd->nsk", front.slopes, pulled - curved)
        half = front.slopes @ self.precisions / 2 @ front.slopes.T
        square = -np.moveaxis(half + np.swapaxes(half, 1, 2), 0, 2) / 2
        return Scores(constant, linear, square)

    def _constant_part(self, pulled: FloatArray) -> FloatArray:
        """Return the part that does not depend on the features, (K,)."""
        _, volumes = np.linalg.slogdet(self.precisions)
        distances = (self.means * pulled).sum(axis=1)
        return np.asarray(np.log(self.shares) + (volumes - distances) / 2)


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
