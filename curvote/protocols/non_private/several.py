"""Learners of more than two classes: those of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from curvote import validate
from curvote.server.learners.scikit import build_estimator

# Linear ones whose two-class form is a learner of curvote's own.
SCIKIT_NAMES: Final = {
    "lda": "discriminant_analysis.LinearDiscriminantAnalysis",
    "logistic": "linear_model.LogisticRegression",
}
SCIKIT_PREFIX: Final = "sklearn:"


def make_estimator(name: str, params: Mapping[str, Any]) -> Any:
    """Return the unfitted estimator of a learner; refuse an unknown name."""
    if not name.startswith(SCIKIT_PREFIX):
        name = SCIKIT_PREFIX + SCIKIT_NAMES[validate.one_of(SCIKIT_NAMES, learner=name)]
    return build_estimator(name.removeprefix(SCIKIT_PREFIX), dict(params))
