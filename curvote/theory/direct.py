"""How well protocol ``direct`` will do, from N, d, epsilon and the signal's strength.

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
from curvote.protocols.choice import choose
from curvote.protocols.direct.arms import FIRST, vectors
from curvote.representation.direction import Directions, Whitening
from curvote.server import directions as decoder
from curvote.server.directions import Line, Sum
from curvote.theory.lies import NONE, Lies
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
    """What to expect of one run, in [0, 1].

    Parameters
    ----------
    error : float
        The mean error of the classifier on new records.
    spread : float
        Its standard deviation from run to run.
    arm : str
        The arm of `direct`.

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
    """Records of a signal along ``slant`` (d,): how they become reports."""

    signal: Signal
    slant: Array
    given: Directions
    z: Array
    lean: Array

    @classmethod
    def draw(cls, rng: np.random.Generator, signal: Signal, given: Directions) -> World:
        """Take a random direction and some records; ``lean`` is E[y | z]."""
        slant = rng.standard_normal(given.d)
        slant /= np.linalg.norm(slant)
        count = int(np.clip(RECORD_VALUES // given.size, 16, RECORDS))
        z = rng.standard_normal((count, given.d))
        return cls(signal, slant, given, z, 2 * signal.chance(z @ slant) - 1)

    def scatter(self, rng: np.random.Generator) -> Array:
        """Return unit vectors of these records less their mean, (records, size)."""
        labels = np.where(rng.random(len(self.z)) < (1 + self.lean) / 2, 1.0, -1.0)
        x = self.given.vectors(self.z, labels)
        return np.asarray((x - x.mean(axis=0)) / np.sqrt(len(x) - 1))

    def mean(self) -> Array:
        """Return the exact mean of the unit vectors, (size,)."""
        s, lean = self.given.intercept, 2 * self.signal.chance(X) - 1
        square = s**2 + (X**2)[:, None] + _rest(self.given.d - 1)
        inverse = (square**-0.5).mean(axis=1) * WEIGHTS
        label = np.r_[s * (lean @ inverse), (lean * X) @ inverse * self.slant]
        constant = s**2 * float(WEIGHTS @ (1 / square).mean(axis=1))
        # E[u u'] is diagonal, (1 - constant)/d but for one entry: it lies on the line
        # from I/p to what z = 0 reports.
        share = constant - (1 - constant) / self.given.d
        mean = share * self.given.vectors(np.zeros((1, self.given.d)), np.zeros(1))[0]
        mean[: self.given.p] += np.sqrt(self.given.share) * label
        return np.asarray(mean)

    def moved(self, made: Whitening) -> Array:
        """Return by how much new coordinates change the mean, from the records."""
        after = self.given.vectors(made.apply(self.z), self.lean)
        return np.asarray(after.mean(axis=0) - self._before)

    @cached_property
    def _before(self) -> Array:
        return np.asarray(self.given.vectors(self.z, self.lean).mean(axis=0))

    def errors(self, lines: list[Line]) -> Array:
        """Return the errors of (coef, intercept), (R,)."""
        coef = np.array([line[0] for line in lines])
        along = coef @ self.slant
        across = np.sqrt(np.maximum((coef**2).sum(axis=1) - along**2, 0))
        return self.signal.error(along, across, np.array([line[1] for line in lines]))


def _rest(df: int) -> Array:
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
    lies: Lies = NONE,
) -> Expectation:
    """Return how protocol ``direct`` will do.

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
    chosen = arm or choose(n, d, epsilon).arm or "mean"
    given = vectors(chosen, d, "standard", "auto")
    case = Case(n, epsilon, given, chosen == "two", lies)
    rng = np.random.default_rng(seed)
    with threadpool_limits(limits=1):  # matrices are too small to share
        found = [
            case.errors(rng, World.draw(rng, signal, given)) for _ in range(SLANTS)
        ]
    return Expectation(float(np.mean(found)), float(np.std(found)), chosen)


@dataclass(frozen=True)
class Case:
    """N, epsilon, how records become vectors, whether in two rounds, and lies."""

    n: int
    epsilon: float
    given: Directions
    twice: bool
    lies: Lies = NONE

    def errors(self, rng: np.random.Generator, world: World, most: int = RUNS) -> Array:
        """Return the errors of some rules, ``most`` at most, in one world."""
        noise = _Noise(rng, world, self.epsilon, self.lies)
        runs = int(np.clip(RUN_VALUES // self.given.size, FEWEST, most))
        lines = self._two(world, noise, runs) if self.twice else self._one(noise, runs)
        return world.errors(lines)

    def _one(self, noise: _Noise, runs: int) -> list[Line]:
        sums = (Sum(mean, self.n) for mean in noise.means(self.n, runs))
        return [decoder.one_round(one, self.given, self.epsilon) for one in sums]

    def _two(self, world: World, noise: _Noise, runs: int) -> list[Line]:
        first = round(FIRST * self.n)
        ways, lines = (self.given, self.epsilon), []
        rounds = [noise.means(n, runs) for n in (first, self.n - first)]
        for one, other in zip(*rounds, strict=True):
            start = Sum(one, first)
            made = decoder.whitening(start, *ways)
            moved = (1 - self.lies.share) * world.moved(made)
            sums = start, Sum(other + moved, self.n - first)
            lines.append(decoder.two_rounds(sums, made, *ways))
        return lines


def means(
    rng: np.random.Generator, world: World, epsilon: float, n: int, runs: int
) -> Array:
    """Return means of ``n`` honest reports of a signal's records, (runs, size)."""
    return _Noise(rng, world, epsilon, NONE).means(n, runs)


class _Noise:
    """The law of means of reports around the mean of unit vectors, and of lies."""

    def __init__(
        self, rng: np.random.Generator, world: World, epsilon: float, lies: Lies
    ) -> None:
        size = world.given.size
        mechanism: Any = PrivUnit(epsilon=epsilon, d=size)
        variance = mechanism.variance(np.eye(1, size))[0]
        self.rng, self.scatter = rng, world.scatter(rng)
        lie = np.zeros(size)
        lie[1 : world.given.p] = lies.pull(world.slant) / mechanism.m
        self.mean = (1 - lies.share) * world.mean() + lies.share * lie
        self.across = variance[1]
        self.along = max(variance[0] + 1 - variance[1], 0.0)

    def means(self, n: int, runs: int) -> Array:
        """Return means of ``n`` reports, (runs, size)."""
        shape = runs, self.scatter.shape[1]
        own = np.sqrt(self.across) * self.rng.standard_normal(shape)
        weights = self.rng.standard_normal((runs, len(self.scatter)))
        sampling = np.sqrt(self.along) * weights @ self.scatter
        return np.asarray(self.mean + (own + sampling) / np.sqrt(n))
