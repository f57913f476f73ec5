"""Records that are not normal: an interval that covers the error of `direct` on them.

`expect_direct` takes records that are standard normal, as they should be after the
public centre and scale. Here the same signal (its best rule errs as often, the classes
have the same shares) depends on a line through records that are shifted, skewed,
heavy-tailed or correlated. Means of reports are drawn from their law around the mean
of such records and decoded as they are in a run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit
from threadpoolctl import threadpool_limits

from curvote.protocols.choice import choose_protocol
from curvote.protocols.direct.arms import make_directions
from curvote.representation.direction import Directions
from curvote.server.directions import Line
from curvote.theory.direct import DirectCase, Expectation, World
from curvote.theory.signals import Signal

Array = NDArray[np.float64]
Rng = np.random.Generator

HARD_SLANTS, HARD_RECORDS, HARD_RUNS = 6, 1000, 8
# Of a law's runs, so many end below the interval and as many above it.
TAIL, WIDE = 0.05, 1.645
STEEPEST = 60.0  # a slope at which the label is all but certain


def _normal_records(rng: Rng, d: int) -> Array:
    return np.asarray(rng.standard_normal((HARD_RECORDS, d)))


def _shifted_records(rng: Rng, d: int) -> Array:
    """Return records whose centre is off by one deviation in every number."""
    return np.asarray(_normal_records(rng, d) + rng.choice([-1.0, 1.0], d))


def _skewed_records(rng: Rng, d: int) -> Array:
    """Return log-normal records of mean 0 and variance 1; 0.8 in the logarithm."""
    mean, grown = np.exp(0.32), np.exp(0.64)
    z = rng.lognormal(0, 0.8, (HARD_RECORDS, d)) - mean
    return np.asarray(z / (mean * np.sqrt(grown - 1)))


def _heavy_tailed_records(rng: Rng, d: int) -> Array:
    """Return records by Student's t of three degrees of freedom, variance 1."""
    return np.asarray(rng.standard_t(3, (HARD_RECORDS, d)) / np.sqrt(3))


def _correlated_records(rng: Rng, d: int) -> Array:
    """Return normal records whose neighbours correlate by 0.7."""
    apart = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    return np.asarray(_normal_records(rng, d) @ np.linalg.cholesky(0.7**apart).T)


LAWS: dict[str, Callable[[Rng, int], Array]] = {
    "shifted": _shifted_records,
    "skewed": _skewed_records,
    "heavy-tailed": _heavy_tailed_records,
    "correlated": _correlated_records,
}


@dataclass(frozen=True)
class EmpiricalWorld(World):
    """A law that some records stand for: the mean and the error are theirs."""

    def mean(self) -> Array:
        """Return the mean of the unit vectors of these records, (size,)."""
        return np.asarray(self.directions.vectors(self.z, self.label_mean).mean(axis=0))

    def errors(self, lines: list[Line]) -> Array:
        """Return the errors of (coef, intercept) on these records, (R,)."""
        coef = np.array([line[0] for line in lines])
        level = self.z @ coef.T + np.array([line[1] for line in lines])
        wrong = (1 - np.sign(level) * self.label_mean[:, None]) / 2
        return np.asarray(wrong.mean(axis=0))


def error_range(
    n: int, d: int, epsilon: float, signal: Signal, expectation: Expectation
) -> tuple[float, float]:
    """Return the range of the error of a run of `direct`, in [0, 1].

    Under each of `LAWS` nine runs of ten do, and of normal records, of which
    ``expectation`` is expected; the arm is that of the public rule.
    """
    arm = choose_protocol(n, d, epsilon).arm or "mean"
    case = DirectCase(
        n, epsilon, make_directions(arm, d, "standard", "auto"), arm == "two"
    )
    with threadpool_limits(limits=1):
        errors = [_errors_under_law(case, signal, law) for law in LAWS]
    ends = np.quantile(errors, [TAIL, 1 - TAIL], axis=1)
    normal_range = (
        expectation.error - WIDE * expectation.spread,
        expectation.error + WIDE * expectation.spread,
    )
    low = max(min(normal_range[0], ends[0].min()), signal.best)
    return float(low), float(max(normal_range[1], ends[1].max()))


def _errors_under_law(case: DirectCase, signal: Signal, law: str) -> Array:
    rng = np.random.default_rng(0)
    worlds = (
        _world_of_law(case.directions, signal, law, seed) for seed in range(HARD_SLANTS)
    )
    return np.concatenate([case.errors(rng, world, HARD_RUNS) for world in worlds])


def _world_of_law(
    directions: Directions, signal: Signal, law: str, seed: int
) -> EmpiricalWorld:
    return EmpiricalWorld(
        signal,
        np.zeros(directions.d),
        directions,
        *_draw_law(directions.d, signal, law, seed),
    )


@lru_cache(maxsize=512)
def _draw_law(d: int, signal: Signal, law: str, seed: int) -> tuple[Array, Array]:
    """Return records of a law (n, d), and E[y | z] (n,) along a random line."""
    rng = np.random.default_rng([seed, d])
    z = LAWS[law](rng, d)
    x = z @ rng.standard_normal(d)
    x = (x - x.mean()) / x.std()

    def intercept(slope: float) -> float:
        def excess(c: float) -> float:
            return float(expit(slope * x + c).mean()) - signal.positive

        far = 10 * (1 + slope)
        return float(brentq(excess, -far, far, xtol=1e-4))

    def error(slope: float) -> float:
        chance = expit(slope * x + intercept(slope))
        return float(np.minimum(chance, 1 - chance).mean()) - signal.best

    reached = error(STEEPEST) < 0 < error(0)
    slope = brentq(error, 0, STEEPEST, xtol=1e-3) if reached else STEEPEST
    return z, 2 * expit(slope * x + intercept(slope)) - 1
