"""Decisions from contrasts: scores for classes of equal frequency, or as they are.

A contrast is p_c (mu_c - mu), mu_c the mean of class c and mu that of all records,
averaged over servers. `balanced` compares mu_c - mu. `prior` adds the logarithms of the
target's rates, in units of such a difference: those are log-odds but for a factor if
all classes spread alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from curvote.transfer.forms.base import Array
from curvote.transfer.weighing import QueryReading

DECISIONS: Final = ("balanced", "prior")


@dataclass(frozen=True)
class Decision:
    """Map from contrasts to scores: ``rates`` (J, K) are the servers' class rates.

    ``offsets`` (K,) times the public constant are added to scores: None if balanced.
    """

    rates: tuple[tuple[float, ...], ...]
    offsets: tuple[float, ...] | None = None

    def row(self, rows: Array, shares: Array) -> Array:
        """Return score rows (C, m), C = 1 for two classes, else K.

        ``rows`` are all servers' contrasts, and the constant's row if there are
        ``offsets``; ``shares`` (J,) the servers' weights.
        """
        contrasts, constant = self._split_contrasts(rows.T)
        pooled = contrasts @ shares
        return self._scores(pooled, shares @ np.array(self.rates), constant).T

    def query_scores(self, values: Array, reading: QueryReading) -> Array:
        """Return scores (q, C) from the rows' products (B, q, r) by a reading."""
        parts = [self._split_contrasts(part) for part in values]
        contrasts, weights = reading.read(np.stack([part for part, _ in parts]))
        server_rates = np.array(self.rates)
        if weights.shape[1] == 1:
            rates = weights[:, 0] @ server_rates
        else:
            rates = np.einsum("qkj,jk->qk", weights, server_rates)
        return self._scores(contrasts, rates, parts[0][1])

    def _split_contrasts(self, values: Array) -> tuple[Array, Array | None]:
        """Return contrasts (n, R, J) and the constant (n,) from columns (n, r)."""
        constant = None
        if self.offsets is not None:
            values, constant = values[:, :-1], values[:, -1]
        apart = values.reshape(len(values), len(self.rates), -1)
        return apart.swapaxes(1, 2), constant

    def _scores(self, contrasts: Array, rates: Array, constant: Array | None) -> Array:
        """Return scores (n, C) from contrasts (n, R), whose ``rates`` are (..., K)."""
        if contrasts.shape[1] == 1:
            contrasts = np.concatenate([-contrasts, contrasts], axis=1)
        scores = contrasts / rates
        if self.offsets is not None and constant is not None:
            scores = scores + np.outer(constant, self.offsets)
        if scores.shape[1] == 2:
            scores = scores[:, 1:] - scores[:, :1]
        return np.asarray(scores)

    def to_json(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON values."""
        offsets = None if self.offsets is None else list(self.offsets)
        return {"rates": [list(row) for row in self.rates], "offsets": offsets}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Decision:
        """Build the decision that `to_json` wrote."""
        offsets = None if document["offsets"] is None else tuple(document["offsets"])
        return cls(tuple(tuple(row) for row in document["rates"]), offsets)
