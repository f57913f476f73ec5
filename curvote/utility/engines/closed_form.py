"""Gaussian discriminants in closed form (QCU, appendix C.1): quadratic scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from curvote.utility.engines.base import Question
from curvote.utility.engines.fronts import Front, undone
from curvote.utility.engines.scores.engine import ScoreEngine
from curvote.utility.engines.scores.forms import Scores
from curvote.validate import FloatArray

# Along one of two values each pair of scores crosses at most twice.
MOST_FEATURES = 2


@dataclass(frozen=True)
class Gaussians:
    """K normal laws of D' features, (K, D') and (K, D', D'), and their shares (K,)."""

    means: FloatArray
    precisions: FloatArray
    shares: FloatArray

    def scores(self, question: Question, front: Front) -> Scores:
        """Return ln(share x density) around the records, but for what all have."""
        at_zero = front.features(question.records) - question.values @ front.slopes
        pulled = np.einsum("kde,ke->kd", self.precisions, self.means)
        bent = np.einsum("nd,kde->nke", at_zero, self.precisions)
        constant = self._constant(pulled) + at_zero @ pulled.T
        constant -= np.einsum("nke,ne->nk", bent, at_zero) / 2
        linear = np.einsum("sd,nkd->nsk", front.slopes, pulled - bent)
        half = front.slopes @ self.precisions / 2 @ front.slopes.T
        square = -np.moveaxis(half + np.swapaxes(half, 1, 2), 0, 2) / 2
        return Scores(constant, linear, square)

    def _constant(self, pulled: FloatArray) -> FloatArray:
        """Return what does not depend on the features, (K,)."""
        _, volumes = np.linalg.slogdet(self.precisions)
        far = (self.means * pulled).sum(axis=1)
        return np.asarray(np.log(self.shares) + (volumes - far) / 2)


class ClosedForm(ScoreEngine):
    """Quadratic discriminants, Gaussian naive Bayes, and mixtures' components.

    Exact for up to two sensitive features.
    """

    name = "closed_form"

    def scores(self, question: Question) -> Scores | str:
        """Return the scores around the records, or why there are none."""
        estimator, front = undone(question)
        laws = _gaussians(estimator)
        if laws is None:
            return f"{type(estimator).__name__} is no discriminant of normal laws."
        if isinstance(front, str):
            return front
        scores = laws.scores(question, front)
        if (noised := len(scores.active())) > MOST_FEATURES:
            return (
                f"Quadratic scores are exact for two sensitive features; here are"
                f" {noised}."
            )
        return scores


def _gaussians(estimator: Any) -> Gaussians | None:
    if hasattr(estimator, "rotations_"):
        return _of_rotations(estimator)
    if hasattr(estimator, "var_") and hasattr(estimator, "theta_"):
        spread = np.array([np.diag(1 / row) for row in estimator.var_])
        return Gaussians(estimator.theta_, spread, estimator.class_prior_)
    # The variational mixture's components are no normal laws.
    if hasattr(estimator, "precisions_") and not hasattr(estimator, "mean_prior_"):
        return Gaussians(estimator.means_, _precisions(estimator), estimator.weights_)
    return None


def _of_rotations(estimator: Any) -> Gaussians:
    pairs = zip(estimator.rotations_, estimator.scalings_, strict=True)
    spread = np.array([turned / size @ turned.T for turned, size in pairs])
    return Gaussians(estimator.means_, spread, estimator.priors_)


def _precisions(mixture: Any) -> FloatArray:
    """Return the precisions of a mixture as matrices, (K, D', D')."""
    given = np.asarray(mixture.precisions_, dtype=np.float64)
    classes, features = mixture.means_.shape
    match mixture.covariance_type:
        case "tied":
            return np.tile(given, (classes, 1, 1))
        case "diag":
            return np.array([np.diag(row) for row in given])
        case "spherical":
            return given[:, None, None] * np.eye(features)
    return given
