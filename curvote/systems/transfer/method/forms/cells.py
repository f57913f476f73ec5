"""Forms of counts: `cells`, of each class in each cell of random grids, and `counts`.

One record adds 1 to P counts of `cells`, so replacing it moves the counts by at most
sqrt(2 P), for any number of classes: they are whole numbers, and nothing is rounded.
Every cell has noise, visited or not, so where records are is no part of what is told.
The counts of all records, `counts`, decide for the majority's class.
"""

import math
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from curvote.base.errors import UserError
from curvote.chain.settings import Strict, WholeNumber
from curvote.systems.transfer.method.features import Grids, principal_directions
from curvote.systems.transfer.method.task import (
    CENTRING,
    Array,
    ClassSums,
    Contrasts,
    NoisedSums,
    Steps,
    Task,
    counted_rates,
)

# How many points stand for the uniform distribution, and for its main directions.
_REFERENCE = 4096


class Parameters(Strict):
    """Grids on ``order`` features each, ``pitch`` in units of the bounds' range.

    ``cells`` is the most numbers that a release may have, over all classes.
    ``centring: sums`` counts in steps of 1/1024, so that noise is no more than needed,
    and knows that each record is in one cell of every grid.
    """

    order: WholeNumber = 2
    pitch: Annotated[float, Field(ge=2**-20, le=64)] = 1.0
    grids: WholeNumber = 400
    cells: WholeNumber = 8192
    centring: Literal["sums"] | None = None


# Steps of one record: exact noise needs many of them, as its sigma is 16 or more.
UNIT = 1 << 10


class Cells(ClassSums):
    """Form with the counts of each class in each cell, class after class."""

    name = "cells"
    Parameters = Parameters

    def settle_params(self, task: Task, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters; too few cells for the grids is a UserError."""
        least = len(task.classes) * params["grids"]
        if params["cells"] < least:
            raise UserError(
                f"cells is {params['cells']}; {len(task.classes)} classes on"
                f" {params['grids']} grids take {least} at least."
            )
        return params | {"order": min(params["order"], task.d)}

    def grids(self, task: Task) -> Grids:
        """Return the public grids of a task."""
        p = task.params
        buckets = p["cells"] // (len(task.classes) * p["grids"])
        return Grids(task.d, p["grids"], p["order"], p["pitch"], buckets, task.seed)

    def length(self, task: Task) -> int:
        """Return the number of numbers: classes times cells."""
        return len(task.classes) * self.grids(task).length

    @staticmethod
    def steps(task: Task) -> int:
        """Return the steps of one record in one cell: 1 in older tasks."""
        return UNIT if CENTRING in task.params else 1

    def unit(self, task: Task) -> float:
        """Return sqrt(P), in steps: a record is 1 in each of P cells."""
        return self.steps(task) * math.sqrt(task.params["grids"])

    def sensitivity(self, task: Task) -> float:
        """Return sqrt(2 P), in steps: a record leaves P cells for P others at most."""
        return self.steps(task) * math.sqrt(2 * task.params["grids"])

    def sums(self, task: Task, cube: Array, codes: Steps) -> Steps:
        """Return the counts, class after class."""
        grids = self.grids(task)
        counted = [grids.counts(cube[codes == k]) for k in range(len(task.classes))]
        return np.concatenate(counted) * self.steps(task)

    def side(self, task: Task, release: NoisedSums) -> Contrasts:
        """Return the contrasts, less noise where a mean of each grid is known.

        Their means over the whole of the bounds are 0 where records fill these evenly;
        each is drawn to that as far as it may be noise (James & Stein 1961).
        """
        contrasts = super().side(task, release)
        if CENTRING not in task.params:
            return contrasts
        cells, noise = self.grids(task).cells, release.sigma / self.unit(task)
        counted = (noise / release.n) ** 2 * cells
        less = contrasts.noise * (1 - 1 / cells)
        sums = self.weights(task, release.values / release.n).sum(axis=0)
        reference = self.without_constant(task, _uniform_mean(self.grids(task))[None])
        hidden = less * float((reference**2).sum())
        hidden += counted * float(self.reference(task, sums[None])[0]) ** 2
        level = self.reference(task, contrasts.rows)
        shift = np.minimum(1, hidden / np.maximum(level**2, hidden)) * level
        rows = contrasts.rows - np.outer(shift, self.constant(task))
        return replace(contrasts, rows=rows, noise=less, rate_noise=counted)

    def rates(self, task: Task, sums: Array) -> Array:
        """Return the classes' shares, by all cells: each grid counts every record."""
        if CENTRING not in task.params:
            return super().rates(task, sums)
        return counted_rates(sums.sum(axis=1) / math.sqrt(task.params["grids"]))

    def without_constant(self, task: Task, rows: Array) -> Array:
        """Return rows of mean 0 over the cells of each grid: all else is noise."""
        if CENTRING not in task.params:
            return super().without_constant(task, rows)
        by_grid = rows.reshape(len(rows), task.params["grids"], -1)
        apart = by_grid - by_grid.mean(axis=2, keepdims=True)
        return np.asarray(apart.reshape(rows.shape))

    def weights(self, task: Task, values: Array) -> Array:
        """Return the sum of phi over each class, (K, cells)."""
        return values.reshape(len(task.classes), -1) / self.unit(task)

    def product(self, task: Task, cube: Array, weights: Array) -> Array:
        """Return phi(x) . w, (q, r)."""
        return self.grids(task).product(cube, weights)

    def reference(self, task: Task, weights: Array) -> Array:
        """Return the mean over points uniform on the bounds, (r,)."""
        return np.asarray(weights @ _uniform_mean(self.grids(task)))

    def constant(self, task: Task) -> Array:
        """Return the weights of the function 1."""
        grids = self.grids(task)
        return np.full(grids.length, 1 / math.sqrt(grids.count))

    def main(self, task: Task) -> Array:
        """Return the leading principal directions of uniform points."""
        return principal_directions(self.grids(task))[0]

    def direction_variances(self, task: Task) -> Array:
        """Return the variance along each principal direction."""
        return principal_directions(self.grids(task))[1]


@lru_cache(maxsize=64)
def _uniform_mean(grids: Grids) -> Array:
    """Return the mean of phi over points that are uniform on [0, 1]^d."""
    points = np.random.default_rng(grids.seed).random((_REFERENCE, grids.d))
    return np.asarray(grids.counts(points) / _REFERENCE / math.sqrt(grids.count))


class CountsParameters(Strict):
    """None: phi(x) is 1 whatever x is."""


class Counts(ClassSums):
    """The count of each class; replacing a record moves two of them by `UNIT` steps."""

    name = "counts"
    Parameters = CountsParameters
    decides = "prior"

    def length(self, task: Task) -> int:
        """Return the number of classes."""
        return len(task.classes)

    def unit(self, task: Task) -> float:
        """Return `UNIT`, the steps of one record."""
        return float(UNIT)

    def sensitivity(self, task: Task) -> float:
        """Return sqrt 2, in steps."""
        return math.sqrt(2) * UNIT

    def sums(self, task: Task, cube: Array, codes: Steps) -> Steps:
        """Return the counts in steps."""
        return UNIT * np.bincount(codes, minlength=len(task.classes)).astype(np.int64)

    def weights(self, task: Task, values: Array) -> Array:
        """Return the counts as released, (K, 1)."""
        return np.asarray(values[:, np.newaxis] / UNIT, dtype=np.float64)

    def product(self, task: Task, cube: Array, weights: Array) -> Array:
        """Return w for every query, (q, r)."""
        return np.repeat(weights.T, len(cube), axis=0)

    def reference(self, task: Task, weights: Array) -> Array:
        """Return w, (r,)."""
        return np.asarray(weights[:, 0])

    def constant(self, task: Task) -> Array:
        """Return the weight of the function 1."""
        return np.ones(1)

    def main(self, task: Task) -> Array:
        """Return the only direction, (1, 1)."""
        return np.ones((1, 1))

    def odds(self, task: Task, main: Array, noise: float) -> float:
        """Return 1: class rates decide alone."""
        return 1.0

    def direction_variances(self, task: Task) -> Array:
        """Return variance 1 for the one direction."""
        return np.ones(1)
