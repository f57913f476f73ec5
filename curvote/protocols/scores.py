"""What report stages of a study share: the test clients, and the table of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.classifier import sign
from curvote.protocols.stage import Columns, Params

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Test:
    """The test clients of one replicate: features (n, d) and labels -1/+1."""

    features: Array
    labels: Array

    def decisions(self, coef: Array, intercept: Array) -> Array:
        """Return f_b(x_i) as an array (n, B)."""
        return np.asarray(self.features @ np.atleast_2d(coef).T + intercept)

    def error(self, decisions: Array) -> Array:
        """Return the misclassification of each column."""
        return np.asarray(np.mean(sign(decisions) != self.labels[:, None], axis=0))


def score_rows(
    errors: dict[str, float],
    none_passed: dict[str, Any],
    params: Params,
    learner: str | None,
) -> Columns:
    """Return the rows of table ``scores`` for one replicate."""
    n = len(errors)
    return {
        "protocol": np.array([params["label"]] * n, dtype=object),
        "epsilon": np.full(n, params["epsilon"]),
        "learner": np.array([learner] * n, dtype=object),
        "method": np.array(list(errors), dtype=object),
        "misclassification": np.array(list(errors.values()), dtype=float),
        "none_passed": np.array([bool(none_passed.get(m, False)) for m in errors]),
    }
