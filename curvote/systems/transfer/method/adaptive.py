"""Grid of bandwidths that the paper's rules choose from, from public sizes alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.systems.transfer.method import weights as weighing
from curvote.systems.transfer.method.task import Contrasts
from curvote.systems.transfer.method.weights import STEADY, best_weights, normalize

Array = NDArray[np.float64]
# Stands for the epsilon of a server that adds no noise.
UNLIMITED = 1e9


def epsilon_value(epsilon: float | str) -> float:
    """Return a level's epsilon as a number, `UNLIMITED` without noise."""
    return UNLIMITED if isinstance(epsilon, str) else epsilon


def effective_size(n: Array, epsilon: Array) -> float:
    """Return the effective sample size n* of section 5."""
    return float(np.minimum(n, (n * epsilon) ** 2).sum())


def bandwidth_grid(
    n: ArrayLike, epsilon: ArrayLike, d: int, first: float = 1.0
) -> list[float]:
    """Return the bandwidths 2^-j, j = 0..floor(ln(n*) / d), times ``first``.

    ``n`` and ``epsilon`` (m + 1,) are public; the logarithm is the natural one. The
    adaptive rules begin at 1, the paper's tuned classifier at 1/2.
    """
    validate.at_least(1, d=d)
    star = effective_size(np.asarray(n, dtype=float), np.asarray(epsilon, dtype=float))
    most = max(0, math.floor(math.log(max(star, 1)) / d))
    return [first * 2.0**-j for j in range(most + 1)]


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelSide(Contrasts):
    """Centred sums of one server at each bandwidth.

    ``alone`` is the epsilon that one of the bandwidths would have cost at that noise.
    """

    epsilon: float
    alone: float
    widths: tuple[float, ...]
    d: int


@dataclass(frozen=True)
class Adaptive:
    """Lepski's rule for J servers with fixed weights (section 5, remark 5.1).

    ``n`` records each, ``noise`` the variance of T_j, ``epsilon`` and ``alone`` as in
    `KernelSide`, ``widths`` falling, ``target`` the target's place; ``shares`` are
    weights where they are stated.
    """

    n: tuple[int, ...]
    noise: tuple[float, ...]
    epsilon: tuple[float, ...]
    alone: tuple[float, ...]
    widths: tuple[float, ...]
    d: int
    target: int
    shares: tuple[float, ...] | None = None
    # Whether the threshold is that for two servers.
    pooled: ClassVar[bool] = False

    @classmethod
    def of(
        cls, sides: Sequence[KernelSide], target: int, shares: Array | None = None
    ) -> Adaptive:
        """Return the rule for these servers; ``shares`` (J,) hold for all queries."""
        return cls(
            n=tuple(side.n for side in sides),
            noise=tuple(side.noise for side in sides),
            epsilon=tuple(side.epsilon for side in sides),
            alone=tuple(side.alone for side in sides),
            widths=sides[0].widths,
            d=sides[0].d,
            target=target,
            shares=None if shares is None else tuple(shares.tolist()),
        )

    @property
    def volume(self) -> Array:
        """Volume h^d of a window at each bandwidth, (B, 1)."""
        return np.asarray(np.array(self.widths)[:, np.newaxis] ** self.d)

    @property
    def variance(self) -> Array:
        """Variance of T_j at each bandwidth, (B, J): (18), (21)."""
        sampled = self.volume / (3 * np.array(self.n))
        return np.asarray(sampled + np.array(self.noise))

    @property
    def source_weights(self) -> Array:
        """Unnormalised weights u_j(h) of the servers in (17), (B, J)."""
        n, alone = np.array(self.n), np.array(self.alone)
        return np.asarray(np.minimum(n, (n * alone) ** 2 * self.volume))

    @property
    def threshold(self) -> float:
        """Threshold that a squared ratio must exceed: C ln(2 n* |H|)."""
        constant = 2.25 * (2 if self.pooled else len(self.n))
        star = effective_size(np.array(self.n), np.array(self.epsilon))
        return constant * math.log(2 * star * len(self.widths))

    def weights(self, values: Array) -> Array:
        """Return the stated weights, broadcast to values (B, q, R, J)."""
        shares = np.zeros(len(self.n)) if self.shares is None else np.array(self.shares)
        return np.broadcast_to(shares, values.shape)

    def read(self, values: Array) -> tuple[Array, Array]:
        """Return contrasts (q, R) and weights (q, R, J) from values (B, q, R, J).

        A contrast is the paper's noised T at the bandwidth that is chosen for it: the
        least whose ratio is clear, else that of the largest ratio (Lepski's method).
        """
        weights = self.weights(values)
        noised_sums = (weights * values).sum(axis=-1)
        spread = (weights**2 * self.variance[:, np.newaxis, np.newaxis]).sum(axis=-1)
        at = choose_bandwidth(noised_sums**2 / spread, self.threshold)[np.newaxis]
        contrasts = np.take_along_axis(
            noised_sums / self.volume[:, :, np.newaxis], at, axis=0
        )
        chosen = np.take_along_axis(weights, at[..., np.newaxis], axis=0)
        return contrasts[0], chosen[0]

    def to_json(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON values."""
        return asdict(self)


def choose_bandwidth(ratios: Array, threshold: float) -> NDArray[np.int64]:
    """Return the index of the bandwidth chosen by Lepski's rule, (B, ...) -> (...)."""
    clear = ratios > threshold
    least = len(ratios) - 1 - clear[::-1].argmax(axis=0)
    return np.asarray(np.where(clear.any(axis=0), least, ratios.argmax(axis=0)))


class AdaptAll(Adaptive):
    """Adaptive rule with weights over the whole simplex (algorithm 2)."""

    def weights(self, values: Array) -> Array:
        """Return the weights of the largest ratio at each bandwidth and query."""
        return best_weights(values, self.variance[:, np.newaxis, np.newaxis])[1]


class AdaptHomog(Adaptive):
    """Adaptive rule with sources weighted by precision (algorithm 1, (17))."""

    pooled = True

    def weights(self, values: Array) -> Array:
        """Return the weights of the largest ratio between target and pooled sources."""
        among_sources = self.source_weights
        among_sources[:, self.target] = 0
        # A target without sources is all there is.
        among_sources = normalize(among_sources) if len(self.n) > 1 else among_sources
        target_only = np.broadcast_to(
            np.eye(1, len(self.n), self.target), among_sources.shape
        )
        pair = np.stack([target_only, among_sources], axis=1)
        pair_values = np.einsum("bqrj,bpj->bqrp", values, pair)
        spread = np.einsum("bpj,bj->bp", pair**2, self.variance)
        spread = np.maximum(spread, np.finfo(float).tiny)
        _, part = best_weights(pair_values, spread[:, np.newaxis, np.newaxis])
        return np.asarray(np.einsum("bqrp,bpj->bqrj", part, pair))


def oracle_weights(
    sides: Sequence[KernelSide], target: int, gamma: ArrayLike, beta: float
) -> Array:
    """Return the oracle weights of (12), (B, J), for known exponents.

    The bandwidth that goes with them solves (11): `rates.radius` with delta.
    """
    rule = Adaptive.of(sides, target)
    widths = np.array(rule.widths)[:, np.newaxis]
    return normalize(rule.source_weights * widths ** (beta * np.asarray(gamma)))


FIXED = weighing.FIXED
BY_QUERY: Mapping[str, type[Adaptive]] = {
    "adapt_all": AdaptAll,
    "adapt_homog": AdaptHomog,
    STEADY: Adaptive,
}
