"""Learners of more than two classes: those of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from curvote import validate
from curvote.server.learners.scikit import build

# Linear ones whose two-class form is a learner of curvote's own.
OWN: Final = {
    "lda": "discriminant_analysis.LinearDiscriminantAnalysis",
    "logistic": "linear_model.LogisticRegression",
}
FAMILY: Final = "sklearn:"


def made(name: str, params: Mapping[str, Any]) -> Any:
    """Return the estimator of a learner, not fitted; a name without one: UserError."""
    if not name.startswith(FAMILY):
        name = FAMILY + OWN[validate.one_of(OWN, learner=name)]
    return build(name.removeprefix(FAMILY), dict(params))
