"""Test clients and the table of scores in report stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.measure import SCORES
from curvote.chain.stage import Rows
from curvote.classifier import decision_sign
from curvote.protocols.measures import MISCLASSIFICATION, NONE_PASSED

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TestClients:
    """The test clients of one replicate: features (n, d) and labels -1/+1."""

    features: Array
    labels: Array

    def decisions(self, coef: Array, intercept: Array) -> Array:
        """Return the decision values f_b(x_i) as an array (n, B)."""
        return np.asarray(self.features @ np.atleast_2d(coef).T + intercept)

    def error(self, decisions: Array) -> Array:
        """Return the misclassification of each column."""
        return np.asarray(
            np.mean(decision_sign(decisions) != self.labels[:, None], axis=0)
        )


def score_rows(
    errors: Mapping[str, float], none_passed: Mapping[str, Any] | None = None
) -> Rows:
    """Return the table ``scores`` of one repetition: errors by method.

    A row tells the error of a method; where ``none_passed`` names the method, another
    one tells whether no classifier passed the cutoff.
    """
    flags = dict(none_passed or {})
    return {
        SCORES.name: {
            "method": np.array([*errors, *flags], dtype=object),
            "metric": np.repeat(
                np.array([MISCLASSIFICATION.name, NONE_PASSED.name], dtype=object),
                [len(errors), len(flags)],
            ),
            "value": np.array([*errors.values(), *flags.values()], dtype=float),
        }
    }
