"""Expectation of protocol ``direct`` from N, d, epsilon and the signal's strength.

The mean of n reports is normal around the mean of the clients' unit vectors x, which a
`Signal` fixes. One report of `PrivUnit` has the second moment

    E[r r'] = b I + (a - b) E[x x'],

a along x and b across it, so the mean's covariance is (b I + (a - b) Cov(x)) / n but
for (a - b - 1) E[x] E[x]' / n, which is 0 while epsilon is small. Means are drawn from
that law and read by the decoders that protocol ``direct`` has; the errors of the rules
that they return are integrals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2
from threadpoolctl import threadpool_limits

from curvote import validate
from curvote.mechanisms.privunit import PrivUnit
from curvote.protocols.choice import choose_protocol
from curvote.protocols.direct.arms import FIRST_ROUND_SHARE, make_directions
from curvote.representation.direction import Directions, Whitening
from curvote.server import directions as decoder
from curvote.server.directions import Line, ReportMean
from curvote.theory.lies import NO_LIES, Lies
from curvote.theory.signals import WEIGHTS, Signal, X

Array = NDArray[np.float64]

SLANTS = 8  # random directions of the signal
RUNS, FEWEST = 32, 2  # for each of them
RECORDS = 128  # that stand for the scatter of unit vectors, and for their moves
# Where vectors are long there are fewer of both.
RECORD_VALUES, RUN_VALUES = 2**18, 2**14
_QUANTILES = (np.arange(100) + 0.5) / 100


@dataclass(frozen=True)
class Expectation:
    """Expected error of one run, in [0, 1].

    Parameters
    ----------
    error : float
        The mean error of the classifier on new records.
    spread : float
        Its standard deviation from run to run.
    arm : str
        The arm of protocol ``direct``.

    Examples
    --------
    >>> from curvote.theory import expect_votes, strengths
    >>> found = expect_votes(1000, 4, 4.0, strengths()["middle"])
    >>> print(f"{found.error:.2f} +- {found.spread:.2f} by {found.arm}")
    0.27 +- 0.01 by votes
    """

    error: float
    spread: float
    arm: str


@dataclass(frozen=True)
class World:
    """Records of a signal along ``slant`` (d,), and the law of their reports."""

    signal: Signal
    slant: Array
    directions: Directions
    z: Array
    label_mean: Array

    @classmethod
    def draw(
        cls, rng: np.random.Generator, signal: Signal, directions: Directions
    ) -> World:
        """Draw a random direction and some records; ``label_mean`` is E[y | z]."""
        slant = rng.standard_normal(directions.d)
        slant /= np.linalg.norm(slant)
        count = int(np.clip(RECORD_VALUES // directions.size, 16, RECORDS))
        z = rng.standard_normal((count, directions.d))
        return cls(signal, slant, directions, z, 2 * signal.chance(z @ slant) - 1)

    def scatter(self, rng: np.random.Generator) -> Array:
        """Return unit vectors of these records less their mean, (records, size)."""
        labels = np.where(
            rng.random(len(self.z)) < (1 + self.label_mean) / 2, 1.0, -1.0
        )
        x = self.directions.vectors(self.z, labels)
        return np.asarray((x - x.mean(axis=0)) / np.sqrt(len(x) - 1))

    def mean(self) -> Array:
        """Return the exact mean of the unit vectors, (size,)."""
        s, lean = self.directions.intercept, 2 * self.signal.chance(X) - 1
        square = s**2 + (X**2)[:, None] + _rest_quantiles(self.directions.d - 1)
        inverse = (square**-0.5).mean(axis=1) * WEIGHTS
        label = np.r_[s * (lean @ inverse), (lean * X) @ inverse * self.slant]
        constant = s**2 * float(WEIGHTS @ (1 / square).mean(axis=1))
        # E[u u'] is diagonal, (1 - constant)/d but for one entry: it lies on the line
        # from I/p to what z = 0 reports.
        share = constant - (1 - constant) / self.directions.d
        mean = (
            share
            * self.directions.vectors(np.zeros((1, self.directions.d)), np.zeros(1))[0]
        )
        mean[: self.directions.p] += np.sqrt(self.directions.share) * label
        return np.asarray(mean)

    def mean_shift(self, whitening: Whitening) -> Array:
        """Return the change of the mean by new coordinates, from the records."""
        after = self.directions.vectors(whitening.apply(self.z), self.label_mean)
        return np.asarray(after.mean(axis=0) - self._mean_before)

    @cached_property
    def _mean_before(self) -> Array:
        return np.asarray(self.directions.vectors(self.z, self.label_mean).mean(axis=0))

    def errors(self, lines: list[Line]) -> Array:
        """Return the errors of (coef, intercept), (R,)."""
        coef = np.array([line[0] for line in lines])
        along = coef @ self.slant
        across = np.sqrt(np.maximum((coef**2).sum(axis=1) - along**2, 0))
        return self.signal.error(along, across, np.array([line[1] for line in lines]))


def _rest_quantiles(df: int) -> Array:
    """Return quantiles of the squared length of ``df`` other coordinates."""
    return chi2.ppf(_QUANTILES, df) if df else np.zeros(1)


def expect_direct(
    n: int,
    d: int,
    epsilon: float,
    signal: Signal,
    *,
    arm: str | None = None,
    seed: int = 0,
    lies: Lies = NO_LIES,
) -> Expectation:
    """Return the expected error of protocol ``direct``.

    Parameters
    ----------
    n : int
        Clients, 2 or more; each reports once.
    d : int
        Numbers of a record.
    epsilon : float
        Budget of a report.
    signal : Signal
        How labels depend on records.
    arm : str or None, default=None
        None takes that of the public rule.
    seed : int, default=0
        Of the draws.
    lies : Lies, default=nobody's
        Reports of full length in the place of honest ones.

    Returns
    -------
    Expectation
        Mean error, spread and arm. Values out of range are a UserError.

    Examples
    --------
    >>> from curvote.theory import strengths
    >>> found = expect_direct(1000, 4, 4.0, strengths()["middle"])
    >>> print(f"{found.error:.2f}, arm {found.arm}")
    0.26, arm two
    """
    validate.at_least(2, n=n)
    chosen = arm or choose_protocol(n, d, epsilon).arm or "mean"
    directions = make_directions(chosen, d, "standard", "auto")
    case = DirectCase(n, epsilon, directions, chosen == "two", lies)
    rng = np.random.default_rng(seed)
    with threadpool_limits(limits=1):  # matrices are too small to share
        errors = [
            case.errors(rng, World.draw(rng, signal, directions)) for _ in range(SLANTS)
        ]
    return Expectation(float(np.mean(errors)), float(np.std(errors)), chosen)


@dataclass(frozen=True)
class DirectCase:
    """N, epsilon, the vectors of records, whether in two rounds, and lies."""

    n: int
    epsilon: float
    directions: Directions
    two_rounds: bool
    lies: Lies = NO_LIES

    def errors(self, rng: np.random.Generator, world: World, most: int = RUNS) -> Array:
        """Return the errors of some rules, ``most`` at most, in one world."""
        noise = _MeanNoise(rng, world, self.epsilon, self.lies)
        runs = int(np.clip(RUN_VALUES // self.directions.size, FEWEST, most))
        lines = (
            self._two_rounds(world, noise, runs)
            if self.two_rounds
            else self._one_round(noise, runs)
        )
        return world.errors(lines)

    def _one_round(self, noise: _MeanNoise, runs: int) -> list[Line]:
        sums = (ReportMean(mean, self.n) for mean in noise.draw_means(self.n, runs))
        return [
            decoder.one_round_classifier(total, self.directions, self.epsilon)
            for total in sums
        ]

    def _two_rounds(self, world: World, noise: _MeanNoise, runs: int) -> list[Line]:
        first = round(FIRST_ROUND_SHARE * self.n)
        ways, lines = (self.directions, self.epsilon), []
        rounds = [noise.draw_means(n, runs) for n in (first, self.n - first)]
        for first_mean, second_mean in zip(*rounds, strict=True):
            start = ReportMean(first_mean, first)
            whitening = decoder.estimate_whitening(start, *ways)
            shift = (1 - self.lies.share) * world.mean_shift(whitening)
            sums = start, ReportMean(second_mean + shift, self.n - first)
            lines.append(decoder.two_round_classifier(sums, whitening, *ways))
        return lines


def honest_means(
    rng: np.random.Generator, world: World, epsilon: float, n: int, runs: int
) -> Array:
    """Return means of ``n`` honest reports of a signal's records, (runs, size)."""
    return _MeanNoise(rng, world, epsilon, NO_LIES).draw_means(n, runs)


class _MeanNoise:
    """The law of means of reports around the mean of unit vectors, and of lies."""

    def __init__(
        self, rng: np.random.Generator, world: World, epsilon: float, lies: Lies
    ) -> None:
        size = world.directions.size
        mechanism: Any = PrivUnit(epsilon=epsilon, d=size)
        variance = mechanism.variance(np.eye(1, size))[0]
        self.rng, self.scatter = rng, world.scatter(rng)
        lie = np.zeros(size)
        lie[1 : world.directions.p] = lies.pull(world.slant) / mechanism.m
        self.mean = (1 - lies.share) * world.mean() + lies.share * lie
        self.across = variance[1]
        self.along = max(variance[0] + 1 - variance[1], 0.0)

    def draw_means(self, n: int, runs: int) -> Array:
        """Return means of ``n`` reports, (runs, size)."""
        shape = runs, self.scatter.shape[1]
        noise = np.sqrt(self.across) * self.rng.standard_normal(shape)
        weights = self.rng.standard_normal((runs, len(self.scatter)))
        sampling = np.sqrt(self.along) * weights @ self.scatter
        return np.asarray(self.mean + (noise + sampling) / np.sqrt(n))
