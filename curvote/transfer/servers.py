"""The servers of DTK as its rates see them: the target first, then the sources."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from curvote import validate
from curvote.errors import UserError

FloatArray = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Servers:
    """Checked sizes, budgets and signal exponents, each (m + 1,), the target first."""

    n: FloatArray
    epsilon: FloatArray
    gamma: FloatArray
    beta: float
    d: int

    @classmethod
    def of(
        cls, n: ArrayLike, epsilon: ArrayLike, gamma: ArrayLike, beta: float, d: int
    ) -> Servers:
        """Return checked servers; see `rates.radius`."""
        sizes = np.atleast_1d(validate.finite(n=n))
        if sizes.ndim > 1 or (sizes < 1).any():
            raise UserError("n holds one size of at least 1 for each server.")
        return cls(
            n=sizes,
            epsilon=_per_server("epsilon", epsilon, sizes),
            gamma=_signal_exponents(gamma, sizes),
            beta=check_smoothness(beta),
            d=validate.at_least(1, d=d),
        )

    @property
    def power(self) -> FloatArray:
        """Exponents 2 beta gamma_j + d, where gamma_0 is 1."""
        return 2 * self.beta * self.gamma + self.d

    def only(self, mask: Mask) -> Servers:
        """Return some of the servers, the target among them."""
        parts = self.n[mask], self.epsilon[mask], self.gamma[mask]
        return Servers(*parts, self.beta, self.d)

    def log_precision(self, log_r: float) -> FloatArray:
        """Return the logarithms of n_j ^ n_j^2 epsilon_j^2 r^d (after theorem 3.4)."""
        private = 2 * (np.log(self.n) + np.log(self.epsilon)) + self.d * log_r
        return np.asarray(np.minimum(np.log(self.n), private))

    def radius(self, level: float = 1.0) -> float:
        """Return the radius at which the left-hand side of (5) is ``level``.

        Each server alone needs at least as large a radius; one of them gives 1/(m + 1)
        of the level at least. Between these ends the root is found in log r.
        """
        alone_end = self.alone(np.log(level)).min()
        shared_end = self.alone(np.log(level / self.n.size)).min()
        ends = shared_end - 1e-9, alone_end + 1e-9  # rounding
        return float(
            np.exp(brentq(self._log_excess, *ends, (np.log(level),), xtol=1e-14))
        )

    def _log_excess(self, log_r: float, log_level: float) -> float:
        """Return the left-hand side of (5) minus the level, in logarithms."""
        terms = self.log_precision(log_r) + self.power * log_r
        return float(np.logaddexp.reduce(terms) - log_level)

    def alone(self, log_level: float) -> FloatArray:
        """Return the log r at which each server's own term in (5) is the level."""
        free = (log_level - np.log(self.n)) / self.power
        noised = log_level - 2 * (np.log(self.n) + np.log(self.epsilon))
        return np.asarray(np.maximum(free, noised / (self.power + self.d)))


def check_smoothness(beta: float) -> float:
    """Return beta in (0, 1] (definition 2.4); anything else is a UserError."""
    if not 0 < beta <= 1:
        raise UserError(f"beta is {beta!r}; smoothness lies above 0 and up to 1.")
    return float(beta)


def target_level(epsilon: ArrayLike, delta: ArrayLike | None, count: int) -> float:
    """Return the right-hand side: 1 of (5), log(2/delta_min) of (11).

    A public server (infinite epsilon) adds no noise; its delta does not count.
    """
    if delta is None:
        return 1.0
    deltas = np.broadcast_to(np.asarray(delta, dtype=np.float64), (count,))
    noised = deltas[np.isfinite(np.broadcast_to(epsilon, (count,)))]
    if noised.size == 0:
        return 1.0
    return float(np.log(2 / validate.fraction(delta=least_delta(noised))))


def least_delta(delta: FloatArray) -> float:
    """Return the least delta; NaN is a UserError."""
    return float(validate.finite(delta=delta).min())


def _per_server(name: str, numbers: ArrayLike, sizes: FloatArray) -> FloatArray:
    """Return one number above 0 for each server; infinity may be among them."""
    values = np.asarray(numbers, dtype=np.float64)
    if values.shape not in {(), sizes.shape}:
        raise UserError(
            f"{name} has shape {values.shape}; give one number, or one for each of the"
            f" {sizes.size} servers, the target first."
        )
    if not (values > 0).all():  # NaN is not above 0, either
        raise UserError(f"{name} holds {values.min()}; every value must be above 0.")
    return np.array(np.broadcast_to(values, sizes.shape))


def _signal_exponents(gamma: ArrayLike, sizes: FloatArray) -> FloatArray:
    """Return the signal exponents gamma_j with gamma_0 = 1."""
    exponents = np.array(gamma, dtype=np.float64)
    if exponents.ndim:
        exponents[:1] = 1.0
    checked = validate.finite(gamma=_per_server("gamma", exponents, sizes))
    checked[0] = 1.0
    return checked
