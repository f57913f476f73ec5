"""Laws of records and labels to judge `auto` on, and others to choose constants on.

`JUDGED` was written down, with its sizes and budgets, before `auto` was run on any of
it, and nothing is chosen on it. `tuned` draws laws of other parameters from another
seed: thresholds and constants are chosen on those. How a law of `JUDGED` counts is
said in benchmarks/bench_laws.py.

Records are z itself, as public constants leave it: a `degree` says how far they are
from independent standard normal numbers. A label is logistic in a score of the
record, of mean 0 and standard deviation `strength` before the intercept that gives
class +1 the share `positive`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

Array = NDArray[np.float64]
Rng = np.random.Generator
Sampler = Callable[[Rng, int], Array]
Score = Callable[[Array], Array]

SEED, TUNING_SEED = 20261122, 7
MANY = 20_000  # records that fix a score's scale and the intercept


def normal(own: Rng, d: int, degree: float) -> Sampler:
    return lambda rng, n: rng.standard_normal((n, d))


def correlated(own: Rng, d: int, degree: float) -> Sampler:
    """Neighbours correlate by ``degree``."""
    apart = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    root = np.linalg.cholesky(degree**apart)
    return lambda rng, n: rng.standard_normal((n, d)) @ root.T


def common(own: Rng, d: int, degree: float) -> Sampler:
    """All pairs correlate by ``degree``, up to signs."""
    signs, rest = own.choice([-1.0, 1.0], d), np.sqrt(1 - degree)

    def records(rng: Rng, n: int) -> Array:
        shared = np.sqrt(degree) * rng.standard_normal((n, 1)) * signs
        return np.asarray(shared + rest * rng.standard_normal((n, d)))

    return records


def shifted(own: Rng, d: int, degree: float) -> Sampler:
    """The public centre is off by ``degree`` deviations in every coordinate."""
    centre = degree * own.choice([-1.0, 1.0], d)
    return lambda rng, n: centre + rng.standard_normal((n, d))


def student(own: Rng, d: int, degree: float) -> Sampler:
    """Student's t of ``degree`` > 2 degrees of freedom, of variance 1."""
    return lambda rng, n: rng.standard_t(degree, (n, d)) * np.sqrt(1 - 2 / degree)


def lognormal(own: Rng, d: int, degree: float) -> Sampler:
    """Log-normal, ``degree`` the deviation of the logarithm; mean 0, variance 1."""
    mean, grown = np.exp(degree**2 / 2), np.exp(degree**2)
    scale = mean * np.sqrt(grown - 1)
    return lambda rng, n: (rng.lognormal(0, degree, (n, d)) - mean) / scale


def exponential(own: Rng, d: int, degree: float) -> Sampler:
    """Exponential of variance 1; the public centre is off by ``degree`` means."""
    return lambda rng, n: rng.exponential(1, (n, d)) - 1 + degree


def binary(own: Rng, d: int, degree: float) -> Sampler:
    """Yes or no as -1 and +1, yes with chances between ``degree`` and a half."""
    chance = own.uniform(degree, 0.5, d)
    return lambda rng, n: np.where(rng.random((n, d)) < chance, 1.0, -1.0)


def uneven(own: Rng, d: int, degree: float) -> Sampler:
    """Scales between 1/``degree`` and ``degree``, correlated by a half."""
    inner = correlated(own, d, 0.5)
    scale = degree ** own.uniform(-1, 1, d)
    return lambda rng, n: inner(rng, n) * scale


def mixture(own: Rng, d: int, degree: float) -> Sampler:
    """Three normal groups whose means have coordinates of deviation ``degree``."""
    means = degree * own.standard_normal((3, d))

    def records(rng: Rng, n: int) -> Array:
        around = rng.standard_normal((n, d)) * 0.7
        return np.asarray(means[rng.choice(3, n, p=[0.5, 0.3, 0.2])] + around)

    return records


def dense(own: Rng, d: int) -> Score:
    slope = own.standard_normal(d)
    return lambda z: z @ slope


def sparse(own: Rng, d: int) -> Score:
    slope = np.zeros(d)
    slope[own.choice(d, min(2, d), replace=False)] = own.choice([-1, 1], min(2, d))
    return lambda z: z @ slope


def bent(own: Rng, d: int) -> Score:
    """A line, and the square of another one."""
    one, other = own.standard_normal((2, d)) / np.sqrt(d)
    return lambda z: z @ one + 0.5 * (z @ other) ** 2


def crossed(own: Rng, d: int) -> Score:
    """A line, and the product of two numbers."""
    slope = own.standard_normal(d) / np.sqrt(d)
    return lambda z: z @ slope + z[:, 0] * z[:, d - 1]


RECORDS: dict[str, Callable[[Rng, int, float], Sampler]] = {
    made.__name__: made
    for made in (
        *(normal, correlated, common, shifted, student),
        *(lognormal, exponential, binary, uneven, mixture),
    )
}
SCORES: dict[str, Callable[[Rng, int], Score]] = {
    made.__name__: made for made in (dense, sparse, bent, crossed)
}


@dataclass(frozen=True, eq=False)
class Law:
    """Records and labels of one law, N, d and the budgets to try; seeded."""

    records: str
    degree: float
    score: str
    strength: float
    positive: float
    n: int
    d: int
    epsilons: tuple[float, ...]
    seed: tuple[int, ...] = ()

    @property
    def equal(self) -> bool:
        return self.positive == 0.5

    @property
    def name(self) -> str:
        size = f"N {self.n} d {self.d} {100 * self.positive:g} %"
        return f"{self.records} {self.degree:g} {self.score} {self.strength:g} {size}"

    def clients(self, rng: Rng, n: int) -> tuple[Array, Array]:
        """Return z (n, d) and labels -1/+1 (n,)."""
        z = self._law[0](rng, n)
        return z, np.where(rng.random(n) < expit(self.logit(z)), 1.0, -1.0)

    def logit(self, z: Array) -> Array:
        """Return the log odds of class +1 of z (n, d), (n,)."""
        return self._law[1](z)

    @cached_property
    def _law(self) -> tuple[Sampler, Score]:
        own = np.random.default_rng(self.seed)
        sampler = RECORDS[self.records](own, self.d, self.degree)
        score = SCORES[self.score](own, self.d)
        known = score(sampler(own, MANY))
        mean, times = float(known.mean()), self.strength / float(known.std())
        known = times * (known - mean)

        def excess(intercept: float) -> float:
            return float(expit(known + intercept).mean()) - self.positive

        intercept = float(brentq(excess, -60, 60))
        return sampler, lambda z: times * (score(z) - mean) + intercept


_LAWS = (
    Law("normal", 0, "dense", 2, 0.5, 2000, 4, (0.5, 1, 2)),
    Law("correlated", 0.8, "dense", 2, 0.5, 3000, 6, (1, 2, 5)),
    Law("common", 0.5, "dense", 1.5, 0.7, 8000, 10, (0.5, 1, 2)),
    Law("shifted", 1, "dense", 3, 0.5, 3000, 5, (0.5, 1, 2, 5)),
    Law("shifted", 2, "sparse", 3, 0.7, 6000, 8, (1, 2, 5)),
    Law("student", 3, "dense", 2, 0.5, 4000, 6, (0.5, 1, 2)),
    Law("student", 2.5, "dense", 2, 0.3, 2000, 3, (1, 2, 5)),
    Law("lognormal", 1, "dense", 2, 0.5, 5000, 5, (0.5, 1, 2)),
    Law("exponential", 0, "sparse", 3, 0.7, 3000, 10, (1, 2, 5)),
    Law("binary", 0.3, "dense", 2, 0.5, 4000, 8, (0.5, 1, 2)),
    Law("binary", 0.1, "dense", 2, 0.85, 10_000, 12, (1, 2, 5)),
    Law("normal", 0, "sparse", 3, 0.5, 5000, 15, (0.5, 1, 2)),
    Law("normal", 0, "dense", 0.7, 0.7, 2000, 5, (0.5, 1, 2)),
    Law("normal", 0, "dense", 1, 0.85, 5000, 8, (0.5, 1, 2)),
    Law("correlated", 0.6, "dense", 1, 0.95, 4000, 10, (0.5, 1, 2, 5)),
    Law("normal", 0, "dense", 0, 0.5, 1000, 6, (0.5, 1, 2)),
    Law("exponential", 0.5, "dense", 0, 0.7, 3000, 5, (0.5, 1, 2)),
    Law("normal", 0, "bent", 2, 0.5, 6000, 4, (1, 2, 5)),
    Law("mixture", 1.5, "crossed", 2, 0.7, 5000, 6, (0.5, 1, 2)),
    Law("uneven", 3, "dense", 3, 0.85, 10_000, 2, (0.5, 1, 2, 5)),
)
JUDGED = tuple(
    Law(**{**vars(law), "seed": (SEED, index)}) for index, law in enumerate(_LAWS)
)

# Degrees that `tuned` draws between.
_DEGREES = {
    "normal": (0, 0),
    "correlated": (0.2, 0.95),
    "common": (0.2, 0.8),
    "shifted": (0.3, 2.5),
    "student": (2.2, 6),
    "lognormal": (0.4, 1.4),
    "exponential": (0, 1),
    "binary": (0.05, 0.5),
    "uneven": (1.5, 6),
    "mixture": (0.5, 3),
}


def tuned(count: int, seed: int = TUNING_SEED) -> Iterator[Law]:
    """Yield laws to choose constants on, each with one epsilon.

    N epsilon^2 is between 250 and 1e5.
    """
    for index in range(count):
        rng = np.random.default_rng([seed, index])
        records = list(RECORDS)[index % len(RECORDS)]
        epsilon = float(np.exp(rng.uniform(np.log(0.4), np.log(5))))
        size = np.exp(rng.uniform(np.log(250), np.log(1e5)))
        yield Law(
            records,
            float(rng.uniform(*_DEGREES[records])),
            str(rng.choice(list(SCORES), p=[0.5, 0.25, 0.15, 0.1])),
            float(rng.choice([0, 0.5, 1, 2, 4], p=[0.1, 0.15, 0.25, 0.3, 0.2])),
            float(rng.choice([0.5, 0.4, 0.25, 0.8, 0.9, 0.96])),
            int(np.clip(size / epsilon**2, 500, 30_000)),
            int(rng.integers(2, 17)),
            (epsilon,),
            (seed, index, 1),
        )
