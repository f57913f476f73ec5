"""From contrasts to scores: as if classes were equally frequent, or as they are.

A contrast is p_c (mu_c - mu), mu_c the mean of class c and mu that of all records,
averaged over servers. `balanced` compares mu_c - mu; `prior` compares
q_c (mu + (mu_c - mu)) with q the rates of the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from curvote.transfer.forms.base import Array
from curvote.transfer.weighing import Reading

DECIDE: Final = ("balanced", "prior")


@dataclass(frozen=True)
class Decision:
    """How scores are made: ``prior`` (K,) are the target's rates, None if balanced.

    ``rates`` (J, K) are each server's own.
    """

    rates: tuple[tuple[float, ...], ...]
    prior: tuple[float, ...] | None = None

    def row(self, contrasts: Array, shares: Array, mean: Array) -> Array:
        """Return score rows (C, m) from contrasts (R, m) pooled by ``shares`` (J,)."""
        rates = shares @ np.array(self.rates)
        return self._scores(contrasts.T, rates, mean).T

    def by_query(self, values: Array, reading: Reading) -> Array:
        """Return scores (q, C) from products (B, q, J R + 1) by a reading.

        The last of the products is that with mu.
        """
        mean = values[..., -1].mean(axis=0)
        apart = values[..., :-1].reshape(*values.shape[:2], len(self.rates), -1)
        contrasts, weights = reading.read(apart.swapaxes(2, 3))
        own = np.array(self.rates)
        if weights.shape[1] == 1:
            rates = weights[:, 0] @ own
        else:
            rates = np.einsum("qkj,jk->qk", weights, own)
        return self._scores(contrasts, rates, mean)

    def _scores(self, contrasts: Array, rates: Array, mean: Array) -> Array:
        """Return scores (n, C) from contrasts (n, R), C = 1 for two classes, else K.

        ``rates`` (..., K) are those that the contrasts were averaged with, ``mean`` is
        mu (n,).
        """
        if contrasts.shape[1] == 1:
            contrasts = np.concatenate([-contrasts, contrasts], axis=1)
        scores = contrasts / rates
        if self.prior is not None:
            scores = np.array(self.prior) * (mean[:, np.newaxis] + scores)
        if scores.shape[1] == 2:
            scores = scores[:, 1:] - scores[:, :1]
        return np.asarray(scores)

    def to_json(self) -> dict[str, Any]:
        """Return the arguments that build it again."""
        prior = self.prior and list(self.prior)
        rates = [list(each) for each in self.rates]
        return {"rates": rates, "prior": prior}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Decision:
        """Build the decision that `to_json` wrote."""
        rates = tuple(tuple(each) for each in told["rates"])
        prior = told["prior"] and tuple(told["prior"])
        return cls(rates, prior)
