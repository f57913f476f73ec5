"""Hospitals of the court: tables of unequal servers, far from the centre of bounds.

A law is drawn by its seed: 2 to 15 numbers in [0, 1], correlated, heavy in the tails or
of two values, whose middle lies up to a fifth of the range off the centre; 1 to 8
servers of 100 to 2,000 records, whose sources may turn labels round, lie elsewhere or
have classes of other sizes. Every other law decides `balanced`, which is judged by
balanced error, the rest `prior`, by error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.linear_model import LogisticRegression

from benchmarks.court.cells import HALVES, Cell, seeds
from curvote.base.entropy import SeededEntropy
from curvote.systems.transfer.method.advice import LINE, choose_form
from curvote.systems.transfer.method.model import combine
from curvote.systems.transfer.method.release import release
from curvote.systems.transfer.method.task import Level, PublicSetup, Task

Array = NDArray[np.float64]
Table = tuple[Array, NDArray[np.int64]]

LAWS, QUICK_LAWS, REPEATS, QUICK_REPEATS, TESTED = 100, 12, 8, 4, 2000
TARGET = "s0"
# One law, by how much of the range it lies off the centre.
OFF = (0.0, 0.05, 0.1, 0.2)
PLAIN: Mapping[str, Any] = {
    "d": 4,
    "sizes": {"s0": 300, "s1": 300},
    "epsilon": 2.0,
    "columns": np.array(["normal"] * 4),
    "loadings": np.zeros((4, 2)),
    "means": np.array([[-0.7], [0.7]]) * np.ones(4),
    "spread": np.full(4, 0.12),
    "side": np.ones(4),
    "share": np.full(2, 0.5),
    "turned": np.zeros(2, dtype=bool),
    "moved": np.zeros((2, 4)),
    "cuts": np.zeros(4),
    "mixed": np.zeros(2),
    "decide": "balanced",
    "bent": False,
}
# A share of a law's sources turns labels round, lies elsewhere by so many deviations.
TURNED, MOVED, FAR = 0.12, 0.25, 0.7
# How often the classes of a law of few columns are parted by no plane.
BENT = 0.3
# What a column is: normal, heavy in the tails (t of 3), of two values.
KINDS, KIND_SHARES = ("normal", "heavy", "binary"), (0.6, 0.2, 0.2)


@dataclass(frozen=True)
class Law:
    """A law drawn by ``seed``, but for the facts that are ``stated``."""

    seed: int
    stated: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Size, columns, classes and servers, some of them as stated."""
        rng = np.random.default_rng([33, self.seed])
        d, servers = int(rng.integers(2, 16)), int(rng.integers(1, 9))
        classes = 2 if rng.random() < 0.8 else 3
        sizes = np.exp(rng.uniform(np.log(100), np.log(2000), servers)).astype(int)
        columns = rng.choice(KINDS, d, p=KIND_SHARES)
        loadings = rng.normal(size=(d, 2)) * rng.choice([0.0, 0.4, 0.9])
        means = rng.normal(size=(classes, d)) * (rng.random(d) < rng.uniform(0.3, 1))
        means -= means.mean(axis=0)
        # Neighbouring classes are .8 to 3 deviations apart.
        apart = np.linalg.norm(means[0] - means[1])
        means *= rng.uniform(0.8, 3) / max(apart, 1e-9)
        share = rng.dirichlet(np.full(classes, 20.0 if rng.random() < 0.4 else 3.0))
        fate = rng.random((2, servers))
        bent = d <= 4 and rng.random() < BENT
        found = {
            "d": d,
            "bent": bent,
            "sizes": {f"s{j}": int(n) for j, n in enumerate(sizes)},
            "epsilon": float(np.exp(rng.uniform(np.log(0.5), np.log(5)))),
            "columns": columns,
            "loadings": loadings,
            "means": means,
            # A deviation is 8 to 20 % of the range.
            "spread": rng.uniform(0.08, 0.2, d),
            "side": rng.choice([-1.0, 1.0], d),
            "off": rng.uniform(0, 0.2),
            "share": np.maximum(share, 0.05) / np.maximum(share, 0.05).sum(),
            "cuts": rng.normal(0, 0.6, d),
            "turned": (fate[0] < TURNED) & (np.arange(servers) > 0),
            "moved": (rng.normal(size=(servers, d)) * FAR * (fate[1] < MOVED)[:, None])
            * (np.arange(servers) > 0)[:, None],
            "mixed": rng.uniform(0, 1, servers),
            "decide": ("balanced", "prior")[self.seed // 2 % 2],
        }
        return found | dict(self.stated)

    @property
    def name(self) -> str:
        f = self.facts
        kind = f"{len(f['share'])} classes, {f['decide']}{', bent' * f['bent']}"
        return f"d {f['d']}, {kind}, {[*f['sizes'].values()]}, off {f['off']:.2f}"

    def table(self, rng: np.random.Generator, server: int, n: int) -> Table:
        """Return ``n`` records of a server in [0, 1] and beyond, and their classes."""
        f = self.facts
        classes = len(f["share"])
        # A source's classes lie between the target's shares and equal ones.
        part = f["mixed"][server] * (server > 0)
        y = rng.choice(classes, n, p=(1 - part) * f["share"] + part / classes)
        raw = rng.normal(size=(n, f["d"])) + rng.normal(size=(n, 2)) @ f["loadings"].T
        raw /= np.sqrt(1 + (f["loadings"] ** 2).sum(axis=1))
        heavy = f["columns"] == "heavy"
        raw[:, heavy] = stats.t.ppf(stats.norm.cdf(raw[:, heavy]), 3) / np.sqrt(3)
        # Where a law is bent, every class but the first lies on both sides.
        turn = np.where(f["bent"] & (rng.random(n) < 0.5), -1.0, 1.0)[:, None]
        raw += (f["means"][y] - f["bent"] * f["means"][0]) * turn + f["moved"][server]
        X = 0.5 + f["off"] * f["side"] + f["spread"] * raw
        binary = f["columns"] == "binary"
        X[:, binary] = raw[:, binary] > f["cuts"][binary]
        return X, (y + f["turned"][server]) % classes


# Form, parameters and weights of every arm; `auto` takes the form of one of them.
ARMS: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "mean": ("moments", {"centring": "sums"}, "aligned"),
    "joint": ("moments", LINE, "aligned"),
    "own server": ("moments", LINE, "adapt_tar"),
    "cells": ("cells", {"pitch": 0.5, "centring": "sums"}, "aligned"),
    "samp": ("kernel", {"grids": 50}, "adapt_samp"),
}


def cells(half: str, quick: bool = False) -> Iterator[Cell]:
    """Yield the cells of a half, then those of one law at the centre and beside it."""
    repeats = QUICK_REPEATS if quick else REPEATS
    for seed in seeds(half, QUICK_LAWS if quick else LAWS):
        yield cell(Law(seed), repeats)
    centred = None
    for off in OFF:
        law = Law(HALVES.index(half), PLAIN | {"off": off})
        found = cell(law, repeats * 4)
        centred = centred or found.auto
        yield replace(found, errors={**found.errors, "centred": centred})


def cell(law: Law, repeats: int) -> Cell:
    """Return the mean errors of all arms over repeated tables and noise."""
    f = law.facts
    found = [errors(law, repeat) for repeat in range(repeats)]
    mean = {name: float(np.mean([each[name] for each in found])) for name in found[0]}
    auto = mean.pop("auto")
    taken = next(name for name, error in mean.items() if error == auto)
    best = min((n for n in mean if n != "clean"), key=lambda name: mean[name])
    apart = [each["auto"] - each[best] for each in found]
    spread = float(np.std(apart) / np.sqrt(repeats))
    return Cell(law.name, law.seed, f["epsilon"], auto, taken, mean, spread)


def errors(law: Law, repeat: int) -> dict[str, float]:
    """Return the error of each arm, of the constant and without privacy, in %."""
    f, rng = law.facts, np.random.default_rng([law.seed, repeat, 1])
    classes, d = len(f["share"]), f["d"]
    tables = {s: law.table(rng, j, n) for j, (s, n) in enumerate(f["sizes"].items())}
    X, y = law.table(rng, 0, TESTED)

    def error(codes: NDArray[np.int64]) -> float:
        wrong = codes != y
        if f["decide"] == "prior":
            return 100 * float(wrong.mean())
        return 100 * float(np.mean([wrong[y == k].mean() for k in np.unique(y)]))

    levels = dict.fromkeys(f["sizes"], Level(f["epsilon"]))
    auto = choose_form(PublicSetup(d, classes, f["sizes"], levels, TARGET))
    arms = dict(ARMS)
    if classes > 2 or f["decide"] == "prior":
        arms.pop("samp", None)
    if all(auto[:3] != arm for arm in arms.values()):
        arms["as chosen"] = auto[:3]
    found, told = {}, {}
    features, names = [(f"x{k}", 0.0, 1.0) for k in range(d)], "012"[:classes]
    for name, (release_, params, weights) in arms.items():
        asked = Task(features, [*names], levels, release_, params)
        if asked.digest() not in told:
            told[asked.digest()] = [
                release(asked, server, table[0], table[1], SeededEntropy(repeat))
                for server, table in tables.items()
            ]
        model = combine(asked, told[asked.digest()], TARGET, weights, f["decide"])
        found[name] = error(model.codes(X))
        if (release_, params, weights) == auto[:3]:
            found["auto"] = found[name]
    majority = np.bincount(tables[TARGET][1], minlength=classes).argmax()
    found["constant"] = error(np.full(TESTED, majority))
    found["clean"] = error(clean(law, tables, X))
    return found


def clean(law: Law, tables: Mapping[str, Table], X: Array) -> NDArray[np.int64]:
    """Return what logistic regression on all honest records says, by server."""
    f = law.facts
    both = zip(tables.values(), f["turned"], strict=True)
    honest = [table for table, turned in both if not turned]
    beside = np.eye(len(honest)).repeat([len(t[1]) for t in honest], axis=0)
    known = np.hstack([np.concatenate([t[0] for t in honest]).clip(0, 1), beside])
    weight = "balanced" if f["decide"] == "balanced" else None
    learner = LogisticRegression(C=100.0, class_weight=weight, max_iter=300)
    learner.fit(known, np.concatenate([t[1] for t in honest]))
    first = np.tile(np.eye(1, len(honest)), (len(X), 1))
    return np.asarray(learner.predict(np.hstack([X.clip(0, 1), first])))
