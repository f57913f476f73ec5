"""Random laws of clients who send one message, and what `auto` makes of them.

A law of seed s says all by `numpy.random.default_rng([KEY, s])`: the number K of
classes, d, N, the law of a record, how labels hang on it, the classes' shares, whether
these are publicly stated (in three laws of four), and four budgets. Records are z
itself, as public constants leave it. `DirectClassifier` plays clients and server; each
repetition has new clients and a seed of its own, the same for all arms. Where shares
are stated every arm is told them, and the constant is the larger class; else it is the
one that noised labels elect.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from benchmarks.court.cells import Cell, seeds
from curvote import DirectClassifier
from curvote.systems.direct.system import choose_protocol

Array = NDArray[np.float64]
Places = NDArray[np.int64]
Rng = np.random.Generator
KEY = 33
LAWS, RUNS, TEST = 50, 48, 8_000
QUICK_LAWS, QUICK_RUNS = 12, 6
# Fewer repetitions where reports are many and long: their means vary less.
FEWEST, NUMBERS = 6, 10_000_000
MANY = 8_000  # records that fix a score's scale and the classes' shares


def normal(own: Rng, d: int) -> Callable[[Rng, int], Array]:
    return lambda rng, n: rng.standard_normal((n, d))


def shifted(own: Rng, d: int) -> Callable[[Rng, int], Array]:
    """The public centre is off by up to 2 deviations, in every coordinate."""
    centre = own.uniform(0.3, 2) * own.choice([-1.0, 1.0], d)
    return lambda rng, n: centre + rng.standard_normal((n, d))


def heavy(own: Rng, d: int) -> Callable[[Rng, int], Array]:
    """Student's t, of variance 1."""
    degrees = own.uniform(2.2, 6)
    scale = np.sqrt(1 - 2 / degrees)
    return lambda rng, n: rng.standard_t(degrees, (n, d)) * scale


def skewed(own: Rng, d: int) -> Callable[[Rng, int], Array]:
    """Log-normal, of mean 0 and variance 1."""
    degree = own.uniform(0.3, 1.2)
    mean, grown = np.exp(degree**2 / 2), np.exp(degree**2)
    scale = mean * np.sqrt(grown - 1)
    return lambda rng, n: (rng.lognormal(0, degree, (n, d)) - mean) / scale


def correlated(own: Rng, d: int) -> Callable[[Rng, int], Array]:
    """Factors that all numbers share, and scales that are off by up to 2."""
    loads = own.standard_normal((d, int(own.integers(1, 4))))
    loads *= np.sqrt(own.uniform(0.3, 0.9)) / np.linalg.norm(loads, axis=1)[:, None]
    rest = np.sqrt(1 - (loads**2).sum(axis=1))
    scale = 2 ** own.uniform(-1, 1, d)

    def records(rng: Rng, n: int) -> Array:
        shared = rng.standard_normal((n, loads.shape[1])) @ loads.T
        return np.asarray(scale * (shared + rest * rng.standard_normal((n, d))))

    return records


def binary(own: Rng, d: int) -> Callable[[Rng, int], Array]:
    """Yes or no as -1 and +1, yes with chances of its own."""
    chance = own.uniform(0.1, 0.9, d)
    return lambda rng, n: np.where(rng.random((n, d)) < chance, 1.0, -1.0)


RECORDS = (normal, shifted, heavy, skewed, correlated, binary)


@dataclass(frozen=True, eq=False)
class Law:
    """The law of a seed: what is public of it, and its clients."""

    seed: int

    @cached_property
    def _own(self) -> Rng:
        return np.random.default_rng([KEY, self.seed])

    @cached_property
    def sizes(self) -> tuple[int, int, int]:
        """K, d and N: half of the laws have two classes."""
        own = self._own
        k = (
            2
            if own.random() < 0.5
            else round(float(np.exp(own.uniform(*np.log([3, 20])))))
        )
        d, n = (np.exp(own.uniform(*np.log(ends))) for ends in ([2, 30], [300, 8000]))
        return k, round(float(d)), round(float(n))

    @cached_property
    def shares(self) -> Array:
        """The shares of the classes: equal in two laws of five."""
        k, own = self.sizes[0], self._own
        if own.random() < 0.4:
            return np.full(k, 1 / k)
        drawn = own.dirichlet(np.full(k, own.uniform(0.7, 4))) + 0.02
        return np.asarray(drawn / drawn.sum())

    @cached_property
    def epsilons(self) -> Array:
        """One in each quarter of .3 to 8, by logarithms."""
        steps = (np.arange(4) + self._own.random(4)) / 4
        return np.asarray(0.3 * (8 / 0.3) ** steps)

    @cached_property
    def stated(self) -> bool:
        """Whether the shares are publicly known."""
        return bool(self._own.random() < 0.75)

    @cached_property
    def draw(self) -> Callable[[Rng, int], tuple[Array, Places]]:
        """The sampler of records and places: z (n, d), y (n,)."""
        # Their order is that of the draws.
        (k, d, _), shares, _, _ = self.sizes, self.shares, self.epsilons, self.stated
        own = self._own
        records = RECORDS[int(own.integers(len(RECORDS)))](own, d)
        few = own.random(d) < (1 if own.random() < 0.6 else 0.3)
        slopes = own.standard_normal((k, d)) * (few if few.any() else 1)
        if own.random() < 0.5:  # clouds: a class moves the record
            apart = float(np.exp(own.uniform(*np.log([0.4, 5])))) / np.sqrt(2)
            means = apart * slopes / np.linalg.norm(slopes, axis=1).mean()
            means -= shares @ means

            def clouds(rng: Rng, n: int) -> tuple[Array, Places]:
                y = rng.choice(k, n, p=shares)
                return records(rng, n) + means[y], y

            return clouds
        # Labels are logistic in scores, whose intercepts give the shares.
        strength = float(np.exp(own.uniform(*np.log([0.4, 8]))))
        known = records(own, MANY) @ slopes.T
        scale, mean = strength / known.std(axis=0).mean(), known.mean(axis=0)
        known = scale * (known - mean)
        level = np.log(shares)
        for _ in range(300):
            level += np.log(shares / softmax(known + level, axis=1).mean(axis=0))

        def logistic(rng: Rng, n: int) -> tuple[Array, Places]:
            z = records(rng, n)
            chance = softmax(scale * (z @ slopes.T - mean) + level, axis=1)
            places = (chance.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
            return z, np.minimum(places, k - 1)

        return logistic

    def clients(self, run: int) -> tuple[Array, Places]:
        """Return the clients of a repetition; no class is without anybody."""
        k, _, n = self.sizes
        z, y = self.draw(np.random.default_rng([KEY, self.seed, run]), n)
        missing = np.setdiff1d(np.arange(k), y)
        y[np.flatnonzero(y == np.bincount(y).argmax())[: len(missing)]] = missing
        return z, y

    def __str__(self) -> str:
        k, d, n = self.sizes
        told = "stated" if self.stated else "not stated"
        return f"K {k} d {d} N {n} largest {100 * self.shares.max():.0f} % {told}"


def cells(half: str, quick: bool = False) -> Iterator[Cell]:
    """Yield a cell for each law of a half and each of its budgets."""
    count, most = (QUICK_LAWS, QUICK_RUNS) if quick else (LAWS, RUNS)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for law_cells in pool.map(partial(measure, most=most), seeds(half, count)):
            yield from law_cells


def measure(seed: int, most: int) -> list[Cell]:
    """Return the cells of a seed's law, of so many repetitions at most."""
    warnings.simplefilter("ignore")  # heavy tails lie outside of any constants
    law, made = Law(seed), []
    (k, d, n), shares = law.sizes, law.shares
    numbers = n * ((k - 1) * (d + 1) + d * d / 2)
    runs = int(np.clip(NUMBERS / numbers, min(FEWEST, most), most))
    law.epsilons, law.stated, law.draw  # noqa: B018  # each draws in its turn
    test, truth = law.draw(np.random.default_rng([KEY, law.seed, RUNS]), TEST)
    balance = shares if law.stated else None
    sample = [law.clients(run) for run in range(runs)]
    clean = LinearDiscriminantAnalysis().fit(*sample[0]).predict(test)
    arms = ["mean", "joint", "two", "votes", *["one_of"] * (k > 2)]
    for epsilon in map(float, law.epsilons):
        errors: dict[str, list[float]] = {}
        for run, clients in enumerate(sample):
            for arm in [*arms, "constant"]:
                if arm == "constant" and law.stated:
                    places = np.full(TEST, shares.argmax())
                else:
                    model = DirectClassifier(
                        arm="majority" if arm == "constant" else arm,
                        epsilon=epsilon,
                        rescale="standard",
                        balance=balance,
                        random_state=RUNS * law.seed + run,
                    )
                    places = model.fit(*clients).predict(test)
                error = 100 * float(np.mean(places != truth))
                errors.setdefault(arm, []).append(error)
        taken = choose_protocol(n, d, epsilon, n_classes=k, balance=balance).method
        taken = "constant" if taken == "majority" else taken
        means = {arm: float(np.mean(values)) for arm, values in errors.items()}
        best = min(means, key=lambda arm: means[arm])
        apart = np.subtract(errors[taken], errors[best])
        means["clean"] = 100 * float(np.mean(clean != truth))
        spread = float(apart.std() / np.sqrt(runs))
        made.append(Cell(str(law), seed, epsilon, means[taken], taken, means, spread))
    return made
