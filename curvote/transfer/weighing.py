"""How much each server counts: rules for all queries at once, and by query.

A rule of `FIXED` takes the sides of all servers and the target's place among them and
returns weights (J,) that sum to 1. A class of `BY_QUERY` weighs their contrasts at each
query anew. Whatever they use is public or noised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from curvote.transfer.agreement import agreements
from curvote.transfer.forms.base import Array
from curvote.transfer.sides import Side
from curvote.transfer.weights import best, best_between


class Reading(Protocol):
    """Contrasts from those of all servers at each query: plain data."""

    def read(self, values: Array) -> tuple[Array, Array]:
        """Return contrasts (q, R) and weights (q, R, J) from values (B, q, R, J).

        B are the bandwidths of the release; weights are >= 0 and sum to 1.
        """
        ...

    def to_json(self) -> dict[str, Any]:
        """Return the arguments that build it again, as JSON."""
        ...


def normalised(raw: Array) -> Array:
    """Return weights (..., J) that sum to 1: equal ones where all are 0."""
    total = raw.sum(axis=-1, keepdims=True)
    equal = np.full_like(raw, 1 / raw.shape[-1])
    return np.asarray(np.divide(raw, total, out=equal, where=total > 0))


def precision(sides: Sequence[Side], target: int) -> Array:
    """Return weights by 1/(sampling variance + noise variance) of `differences`.

    A contrast is p (1 - p) times the difference: its weight is that over the variance.
    """
    return normalised(np.array([side.clear / side.variance for side in sides]))


def aligned(sides: Sequence[Side], target: int) -> Array:
    """Return the weights of `precision` times the agreement with the target."""
    agreement = np.array([each.counts for each in agreements(sides, target)])
    return normalised(precision(sides, target) * agreement)


def samp(sides: Sequence[Side], target: int) -> Array:
    """Return weights by numbers of records (paper 002, section 6.2, AdaptSamp)."""
    return normalised(np.array([float(side.n) for side in sides]))


def tar(sides: Sequence[Side], target: int) -> Array:
    """Return 1 for the target, 0 for all others (AdaptTar)."""
    return np.asarray(np.eye(1, len(sides), target)[0])


@dataclass(frozen=True)
class ByQuery:
    """Weights of the largest ratio to the known ``variances`` (J,), at each query."""

    variances: tuple[float, ...]
    target: int

    @classmethod
    def of(cls, sides: Sequence[Side], target: int) -> ByQuery:
        """Return the reading of these servers."""
        return cls(tuple(side.variance for side in sides), target)

    def read(self, values: Array) -> tuple[Array, Array]:
        """Return contrasts (q, R) and weights (q, R, J) from values (1, q, R, J)."""
        weights = self.weights(values[0])
        return (weights * values[0]).sum(axis=-1), weights

    def weights(self, values: Array) -> Array:
        """Return weights (q, R, J) of all servers (paper 002, (21))."""
        return best(values, self.variances)[1]

    def to_json(self) -> dict[str, Any]:
        """Return the arguments that build it again."""
        return {"variances": list(self.variances), "target": self.target}


class Homogeneous(ByQuery):
    """The same, with the sources' weights among themselves by precision (17)."""

    def weights(self, values: Array) -> Array:
        """Return weights (q, R, J): the target's, and the rest by precision."""
        if len(self.variances) == 1:
            return np.ones_like(values)
        order = np.argsort(np.arange(len(self.variances)) != self.target, kind="stable")
        variances = np.array(self.variances)[order]
        weights = np.empty_like(values)
        found = best_between(values[..., order], variances, 1 / variances[1:])
        weights[..., order] = found[1]
        return weights


Fixed = Callable[[Sequence[Side], int], Array]

FIXED: Mapping[str, Fixed] = {
    "precision": precision,
    "aligned": aligned,
    "adapt_samp": samp,
    "adapt_tar": tar,
}
BY_QUERY = {"adapt_all": ByQuery, "adapt_homog": Homogeneous}
