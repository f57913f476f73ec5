"""Laws of public features and private labels for the court, and how `auto` does there.

A law draws records and says P(class | record), so an error is an expectation: of the
decisions for 2,000 new records that did not join any graph.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.frozen import FrozenEstimator

from benchmarks.court.cells import Cell, seeds
from curvote.labels import PrivateLabelClassifier, encode
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.learners.auto import Auto, Member
from curvote.systems.labels.learners.base import Learner
from curvote.systems.labels.learners.forest import Forest
from curvote.systems.labels.learners.graph import fit_graph
from curvote.systems.labels.learners.knn import KNN, RidgeVotes
from curvote.systems.labels.learners.spectral import LikelihoodVotes, SpectralVotes

Array = NDArray[np.float64]

CELLS, QUICK, TESTED = 120, 16, 2_000
# A law is repeated as often as has so many numbers n K together, but two to six times,
# and then until the standard error of the regret is small, or so many are enough.
NUMBERS, MOST, ENOUGH, SPREAD = 24_000, 6, 24, 0.7


def arms(graph: FrozenEstimator) -> dict[str, Learner]:
    """Return the families of `auto`, each on its own, on a graph that is given."""
    return {
        "linear": LikelihoodVotes(columns="features"),
        "ridge": RidgeVotes(),
        "forest": Forest(),
        "graph": SpectralVotes(spectral=graph),
        "knn": KNN(),
        "likelihood": LikelihoodVotes(spectral=graph),
    }


KINDS = ("clusters", "cloud", "curved", "unequal clusters", "unequal cloud")


@dataclass(frozen=True)
class Law:
    """A law of records (n, d) of K classes, and how many release a code at epsilon.

    ``records`` draws n of them; ``eta`` says P(class | record), (n, K).
    """

    kind: str
    n: int
    d: int
    k: int
    epsilon: float
    records: Callable[[int, np.random.Generator], Array]
    eta: Callable[[Array], Array]

    def __str__(self) -> str:
        return f"{self.kind}, n {self.n}, d {self.d}, K {self.k}"


def draw_law(seed: int) -> Law:
    """Return the law of a seed."""
    rng = np.random.default_rng([33, seed])
    # Both halves have all kinds alike.
    kind = KINDS[seed // 2 % len(KINDS)]
    k, d = int(rng.integers(2, 13)), round(2 * 15 ** rng.uniform())
    n, epsilon = round(500 * 10 ** rng.uniform()), 0.3 * (4 / 0.3) ** rng.uniform()
    slope = rng.uniform(0.5, 1.5) if kind.startswith("unequal") else 0.0
    log_shares = -slope * np.log(rng.permutation(k) + 1.0)
    # What a feature tells falls from the first to the last, fast or not at all.
    weights = np.exp(-rng.uniform(0, 4) * np.arange(d) / d)
    weights /= np.sqrt(np.mean(weights**2))
    make = _clusters if kind.endswith("clusters") else _cloud
    return Law(kind, n, d, k, epsilon, *make(rng, kind, log_shares, weights))


Parts = tuple[Callable[[int, np.random.Generator], Array], Callable[[Array], Array]]


def _clusters(
    rng: np.random.Generator, _kind: str, log_shares: Array, weights: Array
) -> Parts:
    """Return classes that are one to three normal clusters each."""
    k, d, several = len(log_shares), len(weights), int(rng.integers(1, 4))
    centres = rng.normal(size=(k * several, d)) * weights
    # Two centres are so many standard deviations apart.
    centres *= rng.uniform(1.5, 5) / np.sqrt(2 * d)
    turn = _turn(rng, d)
    log_cluster = np.repeat(log_shares, several)

    def records(n: int, rng: np.random.Generator) -> Array:
        cluster = rng.choice(len(centres), n, p=softmax(log_cluster))
        return np.asarray((centres[cluster] + rng.normal(size=(n, d))) @ turn)

    def eta(x: Array) -> Array:
        z = np.linalg.solve(turn.T, x.T).T
        log_density = z @ centres.T - (centres**2).sum(axis=1) / 2 + log_cluster
        posterior = softmax(log_density, axis=1)
        return np.asarray(posterior.reshape(len(x), k, several).sum(axis=2))

    return records, eta


def _cloud(
    rng: np.random.Generator, kind: str, log_shares: Array, weights: Array
) -> Parts:
    """Return one cloud, some columns 0 and 1 or heavy-tailed, and logits on it.

    They are linear in the features, or curved: squares and waves of four directions.
    """
    k, d = len(log_shares), len(weights)
    turn = _turn(rng, d)
    binary, heavy = rng.random((2, d)) < rng.choice([0, 0.3], 2)[:, None]
    cuts = rng.normal(0, 0.7, d)
    strength = rng.uniform(1, 4)
    slopes = rng.normal(size=(d, k)) * weights[:, None]
    slopes *= strength / np.sqrt(d)
    directions = rng.normal(size=(d, 4)) * weights[:, None] / np.sqrt(d)
    mixes = rng.normal(size=(8, k)) * strength / 2

    def records(n: int, rng: np.random.Generator) -> Array:
        x = np.where(heavy, rng.standard_t(3, size=(n, d)), rng.normal(size=(n, d)))
        x = x @ turn
        return np.where(binary, x > cuts, x)

    def eta(x: Array) -> Array:
        if kind == "curved":
            along = x @ directions
            logits = np.hstack([along**2 - 1, np.sin(2 * along)]) @ mixes
        else:
            logits = x @ slopes
        return np.asarray(softmax(logits + log_shares, axis=1))

    return records, eta


def _turn(rng: np.random.Generator, d: int) -> Array:
    """Return a map (d, d) that makes features correlated, of about unit variance."""
    turn = np.eye(d) + rng.choice([0, 0.5, 1.0]) * rng.normal(size=(d, d)) / np.sqrt(d)
    return np.asarray(turn / np.sqrt((turn**2).sum(axis=0)))


def draw_repetition(law: Law, rng: np.random.Generator) -> tuple[Array, Array, Codes]:
    """Return records (n, d), their labels (n,), and the codes of these."""
    x = law.records(law.n, rng)
    y = (law.eta(x).cumsum(axis=1) < rng.random((law.n, 1))).sum(axis=1)
    y = np.minimum(y, law.k - 1)
    return x, y, encode(y, np.arange(law.k), law.epsilon, random_state=rng)


def measure(seed: int) -> Cell:
    """Return the cell of a seed: each arm, the constant and `auto` on the same codes.

    Without privacy stands what `auto` makes of the labels themselves, once.
    """
    law, rows, taken, clean = draw_law(seed), [], Counter[str](), 0.0
    errors: dict[str, float] = {}
    spread, fewest = 0.0, int(np.clip(NUMBERS // (law.n * law.k), 2, MOST))
    for repetition in range(ENOUGH):
        if repetition >= fewest and spread < SPREAD:
            break
        rng = np.random.default_rng([seed, repetition])
        x, y, codes = draw_repetition(law, rng)
        new = law.records(TESTED, rng)
        eta, graph = law.eta(new), FrozenEstimator(fit_graph(x, law.k))
        errors = {
            name: error(learner, x, codes, new, eta)[0]
            for name, learner in arms(graph).items()
        }
        largest = int(codes.decode().mean(axis=0).argmax())
        errors["constant"] = 100 - 100 * float(eta[:, largest].mean())
        auto, learner = error(Auto(graph), x, codes, new, eta)
        members: list[Member] = learner.chosen_["members"]
        taken[max(members, key=lambda one: one.weight).name] += 1
        rows.append([auto, *errors.values()])
        table = np.array(rows)
        auto, *means = table.mean(axis=0).tolist()
        behind = table[:, 0] - table[:, 1 + int(np.argmin(means))]
        if repetition:
            spread = float(behind.std(ddof=1) / np.sqrt(len(rows)))
        else:
            plain = Codes.plain(y, np.arange(law.k))
            clean = error(Auto(graph), x, plain, new, eta)[0]
    named = dict(zip(errors, means, strict=True)) | {"clean": clean}
    largest_member = taken.most_common(1)[0][0]
    return Cell(str(law), seed, law.epsilon, auto, largest_member, named, spread)


def error(
    learner: Learner, x: Array, codes: Codes, new: Array, eta: Array
) -> tuple[float, Learner]:
    """Return the expected error in % of a learner on new records, and it fitted."""
    model = PrivateLabelClassifier(learner, codes.epsilon, random_state=0)
    places = model.fit(x, codes).predict_both(new).places
    return 100 - 100 * float(eta[np.arange(len(new)), places].mean()), model.learner_


def cells(half: str, *, quick: bool = False) -> Iterator[Cell]:
    """Yield the cells of a half, a process on each processor."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(measure, seeds(half, QUICK if quick else CELLS))
