"""Other private ways to learn at one hospital from four, beside `curvote.transfer`.

Run with ``python -m benchmarks.transfer_rivals [--splits R]``; the files of data set
`heart` are read from data/raw or the mirror. The target is Hungary: 150 of its patients
are tested, the rest and all patients of the other hospitals train. At each epsilon
(delta_j = n_j^-2 where there is one):

- curvote's forms, one release of each hospital, of bounds alone: ``moments`` as `auto`
  asks for it and ``cells``, by weights ``aligned`` and with rates, and the paper's
  ``kernel`` by ``adapt_samp``,
- ``objective``: logistic regression with a perturbed objective at each hospital
  (Chaudhuri, Monteleoni & Sarwate 2011), coefficients averaged by size or precision,
- ``gradients``: one shared logistic regression by T full-batch steps; every hospital
  releases T clipped, noised gradients in turn (zCDP), averaged likewise,
- ``direct``: every patient a client, local privacy.

``objective`` and ``gradients`` see a patient as u of length 1 (form `moments`),
and get at every epsilon the best of some regularisations or step sizes: chosen by the
very scores that are shown, so theirs are upper ends. It is a study: seeded, and the
rivals' noise is floating point, which protects nobody.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from benchmarks.rivals_world import TARGET, Splits, Table, hospitals
from curvote import DirectClassifier
from curvote.base.classes import Classes
from curvote.base.entropy import SeededEntropy
from curvote.base.privacy import ZCDP
from curvote.data.public import heart
from curvote.systems.transfer.method.advice import LINE
from curvote.systems.transfer.method.forms.moments import Moments
from curvote.systems.transfer.method.model import combine
from curvote.systems.transfer.method.release import release
from curvote.systems.transfer.method.task import Feature, Level, Task, form

Array = NDArray[np.float64]
Row = dict[float, Array]  # the accuracy of each split, by epsilon

EPSILONS = (0.25, 0.5, 1.0, 2.0, 5.0)
FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "moments": (LINE, "aligned"),
    "cells": ({"centring": "sums"}, "aligned"),
    "kernel": ({"span": 0.5}, "adapt_samp"),
}
RIDGES = (1.0, 3.0, 10.0, 100.0, 1000.0)
STEPS = (5, 10, 20)
RATES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
# As long as every gradient at 0; later ones are cut to it.
CLIP = 0.5
# The length at which Newton's steps end.
NEAR = 1e-9


def task(release: str, params: dict[str, Any], epsilon: float) -> Task:
    schema = heart.TABLE.schema
    features = tuple(Feature(it.name, it.lower, it.upper) for it in schema.features)
    levels = {str(name): Level(epsilon) for name in heart.HOSPITALS}
    return Task(features, Classes(("-1.0", "1.0")), levels, release, params)


def directed(tables: dict[str, Table]) -> dict[str, Table]:
    """Return the tables with u (n, 8) of form `moments` for the features."""
    asked = task(Moments.name, {}, 1)
    return {
        name: (Moments().directions(asked, asked.cube(X)), y)
        for name, (X, y) in tables.items()
    }


def split_by_split(splits: Splits, right: Callable[..., float]) -> Row:
    """Return ``right(epsilon, seed, tables, test)`` of each split."""
    return {
        epsilon: np.array(
            [right(epsilon, seed, *it) for seed, it in enumerate(splits.each())]
        )
        for epsilon in EPSILONS
    }


def released(
    name: str, epsilon: float, seed: int, tables: dict[str, Table], test: Table
) -> float:
    """Return the accuracy of the model of one release a hospital."""
    params, weights = FORMS[name]
    asked = task(name, params, epsilon)
    told = [
        release(asked, server, *table, SeededEntropy(seed))
        for server, table in tables.items()
    ]
    model = combine(asked, told, TARGET, weights, form(name).decides or "prior")
    return float(np.mean(model.predict(test[0]) == test[1].astype(str)))


def direct(epsilon: float, seed: int, tables: dict[str, Table], test: Table) -> float:
    """Return the accuracy of `direct`: all patients who train are its clients."""
    X, y = (np.concatenate(part) for part in zip(*tables.values(), strict=True))
    ends = np.array([(f.lower, f.upper) for f in heart.TABLE.schema.features])
    model = DirectClassifier(
        epsilon=epsilon,
        rescale="standard",
        random_state=seed,
        centre=ends.mean(axis=1),
        scale=np.diff(ends)[:, 0] / 2,
    )
    return float(model.fit(X, y).score(*test))


def objective(splits: Splits, epsilon: float, ridge: float, by: str) -> Array:
    """Return the accuracy of the hospitals' averaged coefficients.

    A hospital minimises sum_i log(1 + exp(-y_i w.u_i)) + ridge |w|^2 / 2 + b.w, b of
    density ~ exp(-rest |b| / 2). Replacing a record moves the gradient by 2 at most,
    which costs rest, and multiplies the determinant of the Hessian by 1 + 1/(4 ridge)
    at most, as each record adds a matrix of rank one: epsilon = rest + log(1 + 1/(4
    ridge)), of which the latter is a quarter at most, and delta = 0. The Gaussian b of
    Kifer, Smith & Thakurta (2012) would be longer here, with p = 8.
    """
    ridge = max(ridge, 1 / (4 * math.expm1(epsilon / 4)))
    rest = epsilon - math.log1p(1 / (4 * ridge))
    rng, shape = np.random.default_rng(1), splits.shape
    w = np.zeros(shape)
    noise = dict.fromkeys(splits.sizes, 4 * (shape[1] + 1) / rest**2)
    for name, share in weights(splits.sizes, noise, by).items():
        b = rng.normal(size=shape)
        b *= rng.gamma(shape[1], 2 / rest, shape[:1])[:, None] / _norm(b)
        w += share * minimum(*splits.train(name), ridge, b)
    return splits.right(w)


def minimum(u: Array, y: Array, ridge: float, b: Array) -> Array:
    """Return the minima w (R, p), by Newton's steps cut so that none rises.

    As |u| = 1, log(1 + r)/r of a step of length r is safe (Bach 2010, proposition 1).
    """
    w, r = np.zeros_like(b), np.full((len(b), 1), np.inf)
    while r.max() > NEAR:
        odds = expit(-y * _times(u, w))
        down = _back(u, y * odds) - ridge * w - b
        bent = np.swapaxes(u * (odds * (1 - odds))[..., None], -1, -2) @ u
        bent += ridge * np.eye(b.shape[-1])
        step = np.linalg.solve(bent, down[..., None])[..., 0]
        r = np.maximum(_norm(step), NEAR**2)
        w += step * np.log1p(r) / r
    return w


def gradients(
    splits: Splits, epsilon: float, rate: float, steps: int, by: str
) -> Array:
    """Return the accuracy of a shared model after ``steps`` noised gradients of each.

    A record's gradient is cut to `CLIP`: replacing it moves their sum by 2 CLIP.
    """
    rng, sizes = np.random.default_rng(1), splits.sizes
    sigma = {name: _sigma(epsilon, n, steps) for name, n in sizes.items()}
    shares = weights(sizes, {name: each**2 for name, each in sigma.items()}, by)
    w = np.zeros(splits.shape)
    for _ in range(steps):
        up = np.zeros_like(w)
        for name, n in sizes.items():
            u, y = splits.train(name)
            pull = np.minimum(expit(-y * _times(u, w)), CLIP)  # its length, as |u| = 1
            noise = rng.normal(0, sigma[name], w.shape)
            up += shares[name] * (_back(u, y * pull) + noise) / n
        w += rate * up
    return splits.right(w)


@lru_cache
def _sigma(epsilon: float, n: int, steps: int) -> float:
    """Return the noise of each of ``steps`` sums of gradients, delta being n^-2."""

    def excess(log_rho: float) -> float:
        return ZCDP(math.exp(log_rho)).to_budget(n**-2).epsilon - epsilon

    return 2 * CLIP * math.sqrt(steps / (2 * math.exp(brentq(excess, -20, 5))))


def weights(
    sizes: dict[str, int], noise: dict[str, float], by: str
) -> dict[str, float]:
    """Return shares by ``size``, or by known ``precision`` of a mean gradient.

    At w = 0 its sampling variance is about 1/(4 p n) in each of p = 8 directions;
    ``noise`` is the variance of what is added to the sum.
    """
    found = {
        name: n if by == "size" else 1 / (1 / (32 * n) + noise[name] / n**2)
        for name, n in sizes.items()
    }
    return {name: each / sum(found.values()) for name, each in found.items()}


def _times(u: Array, w: Array) -> Array:
    """Return u (..., n, p) times w (R, p), (R, n)."""
    return np.asarray((u @ w[..., None])[..., 0])


def _back(u: Array, pull: Array) -> Array:
    """Return the sum over records of ``pull`` (R, n) times u (..., n, p), (R, p)."""
    return np.asarray((pull[..., None, :] @ u)[..., 0, :])


def _norm(w: Array) -> Array:
    return np.asarray(np.linalg.norm(w, axis=-1, keepdims=True))


def best(rule: Callable[[float, float], Array], tried: tuple[float, ...]) -> Row:
    """Return at every epsilon the best of what was tried, in hindsight."""
    return {
        epsilon: max((rule(epsilon, it) for it in tried), key=np.mean)
        for epsilon in EPSILONS
    }


def rows(splits: Splits) -> Iterator[tuple[str, Row]]:
    """Yield the rows of the table."""
    units = replace(splits, tables=directed(splits.tables))
    for name, (_, by) in FORMS.items():
        yield f"`{name}`, `{by}`", split_by_split(splits, partial(released, name))
    for by in ("size", "precision"):
        yield f"objective, by {by}", best(partial(objective, units, by=by), RIDGES)
    for steps, by in product(STEPS, ("size", "precision")):
        rule = partial(gradients, units, steps=steps, by=by)
        yield f"gradients, T = {steps}, by {by}", best(rule, RATES)
    yield "`direct`, every patient a client", split_by_split(splits, direct)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--splits", type=int, default=100)
    splits = Splits.drawn(hospitals(), parser.parse_args().splits)
    print("| accuracy % (standard error) |", *(f"{e:g} |" for e in EPSILONS))
    print("|---|" + "---|" * len(EPSILONS))
    for name, row in rows(splits):
        print(f"| {name} |", *map(_cell, row.values()), flush=True)


def _cell(right: Array) -> str:
    se = right.std(ddof=1) / math.sqrt(len(right))
    return f"{100 * right.mean():.1f} ({100 * se:.1f}) |"


if __name__ == "__main__":
    main()
