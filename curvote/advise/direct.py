"""Expectation of protocol ``direct`` from N, d, epsilon and the signal's strength.

The mean of n reports is normal around the mean of the clients' unit vectors x, which a
`Signal` fixes. One report of `PrivUnit` has the second moment

    E[r r'] = b I + (a - b) E[x x'],

a along x and b across it, so the mean's covariance is (b I + (a - b) Cov(x)) / n but
for (a - b - 1) E[x] E[x]' / n, which is 0 while epsilon is small. Means are drawn from
that law and read by the decoders that protocol ``direct`` has; the errors of the rules
that they return are integrals. Clients may lie (`Lies`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, ndtr
from scipy.stats import chi2

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.threads import one_thread
from curvote.base.validate import FloatArray
from curvote.curves.direction import Directions, Whitening
from curvote.learning import directions as decoder
from curvote.learning.directions import Line, ReportMean
from curvote.mechanisms.privunit import PrivUnit
from curvote.messages.arms import FIRST_ROUND_SHARE, make_directions
from curvote.systems.direct.system import choose_protocol

# Midpoints and weights of a standard normal number: errors below 1e-5.
_STEP = 0.02
X = np.arange(-8 + _STEP / 2, 8, _STEP)
WEIGHTS = np.exp(-(X**2) / 2) / np.exp(-(X**2) / 2).sum()
_WIDEST = 1e3  # no slope and no intercept is farther out
_TINY = 1e-12


@dataclass(frozen=True)
class Signal:
    """P(y = +1 | x) = 1/(1 + exp(-slope x - intercept)), x = z along one direction.

    z is standard normal in every coordinate, as public coordinates should be.

    Parameters
    ----------
    balanced : float in (0, 1/2)
        On what the best rule errs, were the classes equal: gives the slope.
    positive : float in (0, 1), default=0.5
        The share of class +1: gives the intercept.

    Examples
    --------
    >>> signal = Signal(balanced=0.25, positive=0.8)
    >>> print(f"{signal.best:.2f} where the majority errs on {signal.majority:.2f}")
    0.16 where the majority errs on 0.20
    """

    balanced: float
    positive: float = 0.5

    def __post_init__(self) -> None:
        validate.fraction(positive=self.positive)
        if not 0 < self.balanced < 0.5:
            raise UserError(
                f"balanced is {self.balanced!r}; a rule that beats guessing errs on"
                " less than 0.5, and on somebody."
            )

    @cached_property
    def slope(self) -> float:
        """Return the slope: ``E[1/(1 + exp(slope |x|))] = balanced``."""

        def excess(slope: float) -> float:
            return float(WEIGHTS @ expit(-slope * np.abs(X))) - self.balanced

        return float(brentq(excess, 0, _WIDEST))

    @cached_property
    def intercept(self) -> float:
        """Return the intercept: E[P(y = +1)] = ``positive``."""

        def excess(intercept: float) -> float:
            return float(WEIGHTS @ expit(self.slope * X + intercept)) - self.positive

        return float(brentq(excess, -_WIDEST, _WIDEST))

    def chance(self, x: FloatArray) -> FloatArray:
        """Return P(y = +1 | x)."""
        return np.asarray(expit(self.slope * x + self.intercept))

    @property
    def best(self) -> float:
        """Return the error of the best rule."""
        chance = self.chance(X)
        return float(WEIGHTS @ np.minimum(chance, 1 - chance))

    @property
    def majority(self) -> float:
        """Return the error of the rule that always names the larger class."""
        return min(self.positive, 1 - self.positive)

    def error(
        self, along: FloatArray, across: FloatArray, intercept: FloatArray
    ) -> FloatArray:
        """Return the errors of rules sign(w z + c), arrays of one shape [R].

        ``along`` is w along the signal's direction, ``across`` the length of the rest
        of w, which multiplies noise to this label.
        """
        level = np.multiply.outer(along, X) + np.asarray(intercept)[:, None]
        names = ndtr(level / np.maximum(across, _TINY)[:, None])
        chance = self.chance(X)
        return np.asarray((names * (1 - chance) + (1 - names) * chance) @ WEIGHTS)


WEAK, MIDDLE, STRONG = 0.40, 0.25, 0.10


def strengths(positive: float = 0.5) -> dict[str, Signal]:
    """Return a weak, a middle and a strong signal.

    Parameters
    ----------
    positive : float in (0, 1), default=0.5
        The share of class +1.

    Returns
    -------
    dict of Signal
        The best rule errs on 40, 25 and 10 % where the classes are equal, and has the
        same slopes where they are not.

    Examples
    --------
    >>> {name: signal.balanced for name, signal in strengths().items()}
    {'weak': 0.4, 'middle': 0.25, 'strong': 0.1}
    """
    errors = {"weak": WEAK, "middle": MIDDLE, "strong": STRONG}
    return {name: Signal(error, positive) for name, error in errors.items()}


@dataclass(frozen=True)
class Lies:
    """Some of the clients pull in one direction.

    They send a possible message that points there; one that mixes slopes, intercept
    and second moment does more (docs/privacy.md, "Liars").

    Parameters
    ----------
    share : float in [0, 1/2)
        Of the clients.
    across : bool, default=False
        Whether they pull across the signal instead of against it, which turns a rule
        where too few lie to reverse it.

    Examples
    --------
    >>> from curvote.theory import expect_votes, strengths
    >>> middle = strengths()["middle"]
    >>> found = [expect_votes(1000, 4, 4.0, middle, lies=Lies(f)) for f in (0, 0.2)]
    >>> print([round(each.error, 2) for each in found])  # a fifth turns the answer
    [0.27, 0.54]
    """

    share: float
    across: bool = False

    def __post_init__(self) -> None:
        validate.minority(liars=self.share)

    def pull(self, slant: FloatArray) -> FloatArray:
        """Return the unit vector (d,) of the pull; ``slant`` (d,) is the signal's.

        Of one number only the sign can be turned.
        """
        if not self.across or len(slant) == 1:
            return -slant
        # Any other axis, less its part along the signal.
        other = np.eye(len(slant))[int(np.abs(slant).argmin())]
        other -= (other @ slant) * slant
        return np.asarray(other / np.linalg.norm(other))


NO_LIES = Lies(0.0)


def hidden_signal_error(epsilon: float, liars: float) -> float:
    """Return the best rule's error from which on liars can hide every signal.

    Whatever the protocol, as long as each client sends one message by a mechanism that
    is private at ``epsilon``, and each is a liar with probability f = ``liars``, in
    [0, 1/2): liars who know the signal make what all clients send look the same as for
    the signal with all labels turned. So every rule errs on half of the records in the
    mean of both. 1/2 without liars, 0 where they can hide everything.

    An epsilon-private message has laws for (z, y) and (z, -y) that differ by tanh(
    epsilon/2) in total variation at most (Kairouz, Oh & Viswanath 2015); for a signal
    and its reverse therefore by t tanh(epsilon/2), t = E|2 P(y = 1 | z) - 1|, that is
    1 - 2 error of the best rule. Lies that even it out exist if and only if it is at
    most f/(1 - f). Mechanisms may differ, and depend on earlier messages: these are
    alike, too. It is the case of one bit of the attack on every non-interactive
    protocol by Cheu, Smith & Ullman (2021, doi 10.29012/jpc.754); over large domains
    theirs needs fewer liars than this bound says.
    """
    share = validate.minority(liars=liars)
    distance = math.tanh(validate.positive(epsilon=epsilon) / 2)
    return max(0.0, (1 - share / ((1 - share) * distance)) / 2)


Rng = np.random.Generator

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
    slant: FloatArray
    directions: Directions
    z: FloatArray
    label_mean: FloatArray

    @classmethod
    def draw(cls, rng: Rng, signal: Signal, directions: Directions) -> World:
        """Draw a random direction and some records; ``label_mean`` is E[y | z]."""
        slant = rng.standard_normal(directions.d)
        slant /= np.linalg.norm(slant)
        count = int(np.clip(RECORD_VALUES // directions.size, 16, RECORDS))
        z = rng.standard_normal((count, directions.d))
        return cls(signal, slant, directions, z, 2 * signal.chance(z @ slant) - 1)

    def scatter(self, rng: Rng) -> FloatArray:
        """Return unit vectors of these records less their mean, (records, size)."""
        positive = rng.random(len(self.z)) < (1 + self.label_mean) / 2
        x = self.directions.vectors(self.z, np.where(positive, 1.0, -1.0))
        return np.asarray((x - x.mean(axis=0)) / np.sqrt(len(x) - 1))

    def mean(self) -> FloatArray:
        """Return the exact mean of the unit vectors, (size,)."""
        d, s = self.directions.d, self.directions.intercept
        lean = 2 * self.signal.chance(X) - 1
        # Quantiles of the squared length of the other coordinates.
        rest = chi2.ppf(_QUANTILES, d - 1) if d > 1 else np.zeros(1)
        square = s**2 + (X**2)[:, None] + rest
        inverse = (square**-0.5).mean(axis=1) * WEIGHTS
        label = np.r_[s * (lean @ inverse), (lean * X) @ inverse * self.slant]
        constant = s**2 * float(WEIGHTS @ (1 / square).mean(axis=1))
        # E[u u'] is diagonal, (1 - constant)/d but for one entry: it lies on the line
        # from I/p to what z = 0 reports.
        share = constant - (1 - constant) / d
        mean = share * self.directions.vectors(np.zeros((1, d)), np.zeros(1))[0]
        mean[: self.directions.p] += np.sqrt(self.directions.share) * label
        return np.asarray(mean)

    def draw_records(
        self, rng: Rng, count: int
    ) -> tuple[FloatArray, NDArray[np.int64]]:
        """Draw records (n, d) and places of their classes (n,)."""
        z = rng.standard_normal((count, len(self.slant)))
        chance = self.signal.chance(z @ self.slant)
        return z, (rng.random(count) < chance).astype(np.int64)

    def mean_shift(self, whitening: Whitening) -> FloatArray:
        """Return the change of the mean by new coordinates, from the records."""
        after = self.directions.vectors(whitening.apply(self.z), self.label_mean)
        return np.asarray(after.mean(axis=0) - self._mean_before)

    @cached_property
    def _mean_before(self) -> FloatArray:
        return np.asarray(self.directions.vectors(self.z, self.label_mean).mean(axis=0))

    def errors(self, lines: list[Line]) -> FloatArray:
        """Return the errors of (coef, intercept), (R,)."""
        coef = np.array([line[0] for line in lines])
        along = coef @ self.slant
        across = np.sqrt(np.maximum((coef**2).sum(axis=1) - along**2, 0))
        return self.signal.error(along, across, np.array([line[1] for line in lines]))


def expect_direct(
    n: int,
    d: int,
    epsilon: float,
    signal: Signal,
    *,
    arm: str | None = None,
    seed: int = 0,
    lies: Lies = NO_LIES,
    public_balance: bool = False,
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
    public_balance : bool, default=False
        Whether the signal's share of class +1 is public, and so read with the reports.

    Returns
    -------
    Expectation
        Mean error, spread and arm. Values out of range are a UserError.

    Examples
    --------
    >>> from curvote.theory import strengths
    >>> found = expect_direct(1000, 4, 4.0, strengths()["middle"])
    >>> print(f"{found.error:.2f}, arm {found.arm}")
    0.26, arm joint
    """
    validate.at_least(2, n=n)
    chosen = arm or choose_protocol(n, d, epsilon, of_direct=True).method
    directions = make_directions(chosen, d, "standard", "auto")
    case = DirectCase(n, epsilon, directions, chosen == "two", lies, public_balance)
    rng = np.random.default_rng(seed)
    errors = partial(case.errors, rng)
    return average_worlds(rng, signal, directions, errors, chosen)


def average_worlds(
    rng: Rng,
    signal: Signal,
    directions: Directions,
    errors: Callable[[World], FloatArray],
    arm: str,
) -> Expectation:
    """Return the expectation over random directions of the signal."""
    with one_thread():  # matrices are too small to share
        worlds = (World.draw(rng, signal, directions) for _ in range(SLANTS))
        all_errors = [errors(world) for world in worlds]
    return Expectation(float(np.mean(all_errors)), float(np.std(all_errors)), arm)


@dataclass(frozen=True)
class DirectCase:
    """N, epsilon, vectors of records, whether in two rounds, lies, public shares."""

    n: int
    epsilon: float
    directions: Directions
    two_rounds: bool
    lies: Lies = NO_LIES
    public_balance: bool = False

    def errors(self, rng: Rng, world: World, most: int = RUNS) -> FloatArray:
        """Return the errors of some rules, ``most`` at most, in one world."""
        noise = MeanNoise(rng, world, self.epsilon, self.lies)
        runs = int(np.clip(RUN_VALUES // self.directions.size, FEWEST, most))
        positive = world.signal.positive
        balance = (1 - positive, positive) if self.public_balance else None
        lines, ways = [], (self.directions, self.epsilon)
        if not self.two_rounds:
            for mean in noise.draw_means(self.n, runs):
                total = ReportMean(mean, self.n)
                lines.append(decoder.one_round_classifier(total, *ways, balance))
            return world.errors(lines)
        first = round(FIRST_ROUND_SHARE * self.n)
        rounds = [noise.draw_means(n, runs) for n in (first, self.n - first)]
        for first_mean, second_mean in zip(*rounds, strict=True):
            start = ReportMean(first_mean, first)
            whitening = decoder.estimate_whitening(start, *ways)
            shift = (1 - self.lies.share) * world.mean_shift(whitening)
            sums = start, ReportMean(second_mean + shift, self.n - first)
            lines.append(decoder.two_round_classifier(sums, whitening, *ways, balance))
        return world.errors(lines)


class MeanNoise:
    """The law of means of reports around the mean of unit vectors, and of lies."""

    def __init__(self, rng: Rng, world: World, epsilon: float, lies: Lies) -> None:
        size = world.directions.size
        mechanism: Any = PrivUnit(epsilon=epsilon, d=size)
        variance = mechanism.variance(np.eye(1, size))[0]
        self.rng, self.scatter = rng, world.scatter(rng)
        lie = np.zeros(size)
        lie[1 : world.directions.p] = lies.pull(world.slant) / mechanism.m
        self.mean = (1 - lies.share) * world.mean() + lies.share * lie
        self.across = variance[1]
        self.along = max(variance[0] + 1 - variance[1], 0.0)

    def draw_means(self, n: int, runs: int) -> FloatArray:
        """Return means of ``n`` reports, (runs, size)."""
        shape = runs, self.scatter.shape[1]
        noise = np.sqrt(self.across) * self.rng.standard_normal(shape)
        weights = self.rng.standard_normal((runs, len(self.scatter)))
        sampling = np.sqrt(self.along) * weights @ self.scatter
        return np.asarray(self.mean + (noise + sampling) / np.sqrt(n))


HARD_SLANTS, HARD_RECORDS, HARD_RUNS = 6, 1000, 8
# Of a law's runs, so many end below the interval and as many above it.
TAIL, WIDE = 0.05, 1.645
STEEPEST = 60.0  # a slope at which the label is all but certain


def _skewed_records(rng: Rng, d: int) -> FloatArray:
    """Return log-normal records of mean 0 and variance 1; 0.8 in the logarithm."""
    mean, grown = np.exp(0.32), np.exp(0.64)
    z = rng.lognormal(0, 0.8, (HARD_RECORDS, d)) - mean
    return np.asarray(z / (mean * np.sqrt(grown - 1)))


def _correlated_records(rng: Rng, d: int) -> FloatArray:
    """Return normal records whose neighbours correlate by 0.7."""
    apart = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    z = rng.standard_normal((HARD_RECORDS, d))
    return np.asarray(z @ np.linalg.cholesky(0.7**apart).T)


LAWS: dict[str, Callable[[Rng, int], FloatArray]] = {
    # The centre is off by one deviation in every number.
    "shifted": lambda rng, d: (
        rng.standard_normal((HARD_RECORDS, d)) + rng.choice([-1.0, 1.0], d)
    ),
    "skewed": _skewed_records,
    # Student's t of three degrees of freedom, variance 1.
    "heavy-tailed": lambda rng, d: rng.standard_t(3, (HARD_RECORDS, d)) / np.sqrt(3),
    "correlated": _correlated_records,
}


@dataclass(frozen=True)
class EmpiricalWorld(World):
    """A law that some records stand for: the mean and the error are theirs."""

    def mean(self) -> FloatArray:
        """Return the mean of the unit vectors of these records, (size,)."""
        return self._mean_before

    def errors(self, lines: list[Line]) -> FloatArray:
        """Return the errors of (coef, intercept) on these records, (R,)."""
        coef = np.array([line[0] for line in lines])
        level = self.z @ coef.T + np.array([line[1] for line in lines])
        wrong = (1 - np.sign(level) * self.label_mean[:, None]) / 2
        return np.asarray(wrong.mean(axis=0))


def error_range(
    n: int,
    d: int,
    epsilon: float,
    signal: Signal,
    expectation: Expectation,
    *,
    public_balance: bool = False,
) -> tuple[float, float]:
    """Return the range of the error of a run of `direct`, in [0, 1].

    Under each of `LAWS` nine runs of ten do, and of normal records, of which
    ``expectation`` is expected; the arm is its. `expect_direct` explains
    ``public_balance``.
    """
    directions = make_directions(expectation.arm, d, "standard", "auto")
    two_rounds = expectation.arm == "two"
    case = DirectCase(n, epsilon, directions, two_rounds, NO_LIES, public_balance)
    errors = []
    with one_thread():
        for law in LAWS:
            rng, of_law = np.random.default_rng(0), []
            for seed in range(HARD_SLANTS):
                law_records = _draw_law(d, signal, law, seed)
                world = EmpiricalWorld(signal, np.zeros(d), directions, *law_records)
                of_law.append(case.errors(rng, world, HARD_RUNS))
            errors.append(np.concatenate(of_law))
    ends = np.quantile(errors, [TAIL, 1 - TAIL], axis=1)
    margin = WIDE * expectation.spread
    low = max(min(expectation.error - margin, ends[0].min()), signal.best)
    return float(low), float(max(expectation.error + margin, ends[1].max()))


@lru_cache(maxsize=512)
def _draw_law(
    d: int, signal: Signal, law: str, seed: int
) -> tuple[FloatArray, FloatArray]:
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
