"""Weights of servers: rules for all queries, rules by query, optimal weights.

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
from curvote.transfer.sides import Contrasts
from curvote.transfer.weights import best_target_weight, best_weights


class QueryReading(Protocol):
    """Protocol of a rule that combines the servers' contrasts at each query."""

    def read(self, values: Array) -> tuple[Array, Array]:
        """Return contrasts (q, R) and weights (q, R, J) from values (B, q, R, J).

        B are the bandwidths of the release; weights are >= 0 and sum to 1.
        """
        ...

    def to_json(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON values."""
        ...


def normalize(raw: Array) -> Array:
    """Return weights (..., J) scaled to sum 1; equal ones where all are 0."""
    total = raw.sum(axis=-1, keepdims=True)
    equal = np.full_like(raw, 1 / raw.shape[-1])
    return np.asarray(np.divide(raw, total, out=equal, where=total > 0))


def precision_weights(sides: Sequence[Contrasts], target: int) -> Array:
    """Return weights by the inverse variance of each server's `differences`.

    A contrast is p (1 - p) times the difference: its weight is that over the variance.
    """
    return normalize(np.array([side.clear / side.variance for side in sides]))


def aligned_weights(sides: Sequence[Contrasts], target: int) -> Array:
    """Return the precision weights times the agreement with the target."""
    agreement = np.array(
        [
            agreement_of_server.counts
            for agreement_of_server in agreements(sides, target)
        ]
    )
    return normalize(precision_weights(sides, target) * agreement)


def size_weights(sides: Sequence[Contrasts], target: int) -> Array:
    """Return weights by numbers of records (paper 002, section 6.2, AdaptSamp)."""
    return normalize(np.array([float(side.n) for side in sides]))


def target_weights(sides: Sequence[Contrasts], target: int) -> Array:
    """Return weight 1 for the target, 0 for all others (AdaptTar)."""
    return np.asarray(np.eye(1, len(sides), target)[0])


@dataclass(frozen=True)
class ByQuery:
    """Weights of the largest signal-to-noise ratio at each query."""

    variances: tuple[float, ...]
    target: int

    @classmethod
    def of(cls, sides: Sequence[Contrasts], target: int) -> ByQuery:
        """Return the rule for these servers."""
        return cls(tuple(side.variance for side in sides), target)

    def read(self, values: Array) -> tuple[Array, Array]:
        """Return contrasts (q, R) and weights (q, R, J) from values (1, q, R, J)."""
        weights = self.weights(values[0])
        return (weights * values[0]).sum(axis=-1), weights

    def weights(self, values: Array) -> Array:
        """Return weights (q, R, J) of all servers (paper 002, (21))."""
        return best_weights(values, self.variances)[1]

    def to_json(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON values."""
        return {"variances": list(self.variances), "target": self.target}


class Homogeneous(ByQuery):
    """Weights by query for the target, by precision (17) among the sources."""

    def weights(self, values: Array) -> Array:
        """Return weights (q, R, J): the target's, and the rest by precision."""
        if len(self.variances) == 1:
            return np.ones_like(values)
        order = np.argsort(np.arange(len(self.variances)) != self.target, kind="stable")
        variances = np.array(self.variances)[order]
        weights = np.empty_like(values)
        optimum = best_target_weight(values[..., order], variances, 1 / variances[1:])
        weights[..., order] = optimum[1]
        return weights


FixedRule = Callable[[Sequence[Contrasts], int], Array]

FIXED: Mapping[str, FixedRule] = {
    "precision": precision_weights,
    "aligned": aligned_weights,
    "adapt_samp": size_weights,
    "adapt_tar": target_weights,
}
BY_QUERY = {"adapt_all": ByQuery, "adapt_homog": Homogeneous}
