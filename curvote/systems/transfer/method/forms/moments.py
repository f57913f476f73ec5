"""Ridge regression on pooled contrasts and a pooled second moment of known noise.

What `curvote.learning.directions` does with the means of private reports is done here
with those of servers: both are unbiased, of known variance.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.chain.settings import Numbers, Strict
from curvote.learning import directions
from curvote.systems.transfer.method.task import (
    Array,
    ClassSums,
    Contrasts,
    NoisedSums,
    Refine,
    Steps,
    Task,
)

# What the number of records adds to a second moment, over the coordinates of a row:
# it is believed where it stands out from that, too.
SAMPLING = 2.0


def ridge_refinement(
    sides: Sequence[Contrasts], shares: Array, public: Array
) -> Refine:
    """Return the map from a contrast row (p,) to its row of ridge regression.

    ``shares`` (J,) weigh the ``sides``, all of which have a second moment; ``public``
    (p,) is the diagonal of the one that would be expected.
    """
    seconds = [side.second for side in sides if side.second is not None]
    errors = [side.second_noise + SAMPLING / side.n / len(public) for side in sides]
    pooled, noise = np.tensordot(shares, seconds, 1), float(shares**2 @ errors)
    second = directions.shrink_second_moment(pooled, noise, public)
    errors = [side.noise + side.sampling / len(public) for side in sides]
    contrast_noise = float(shares**2 @ errors)

    def refine(rows: Array) -> Array:
        moments_of_all = directions.NoisyMoments(rows, contrast_noise, second)
        by_row = (replace(moments_of_all, label=row[None]) for row in rows)
        return np.stack([directions.solve_weights(moments) for moments in by_row])

    return refine


# Steps to 1: so fine that rounding adds nothing that could be seen.
UNIT = 1 << 20
# Parameters far from 1 would leave of a direction what rounding makes of it.
FARTHEST = 1000.0
# How many points stand for the uniform distribution.
_REFERENCE = 4096
_BLOCK = 1 << 14  # records that are summed at once


class Parameters(Strict):
    """``centre`` and ``scale``: z is (x - centre)/scale; ``cut`` is s.

    They are public, in the features' own units, a number for each or one for all:
    without them the middle of the bounds, and half their range. What is known of a
    usual record is worth more than bounds that hold for all.
    ``share`` is the part of the square that the class sums have in arm ``joint``.
    """

    arm: Literal["mean", "joint"] = "mean"
    centre: Numbers | None = None
    scale: Numbers | None = None
    cut: Annotated[float, Field(ge=1 / FARTHEST, le=FARTHEST)] = 1.6
    share: Annotated[float, Field(ge=0.01, le=0.99)] = 0.6


class Moments(ClassSums):
    """Form with class sums of directions u, then the upper triangle of u u'."""

    name = "moments"
    Parameters = Parameters

    def settle_params(self, task: Task, params: dict[str, Any]) -> dict[str, Any]:
        """Return centre and scale of every feature; other lengths: UserError."""
        lower, upper = np.array([feature[1:] for feature in task.features]).T
        values = {"centre": (lower + upper) / 2, "scale": (upper - lower) / 2}
        for name in values:
            if params[name] is None:
                continue
            numbers = validate.finite(**{name: params[name]})
            if numbers.size not in {1, task.d}:
                raise UserError(
                    f"{name} has {numbers.size} numbers for {task.d} features."
                )
            values[name] = np.broadcast_to(numbers.ravel(), task.d)
        centre, scale = values["centre"], values["scale"]
        with np.errstate(over="ignore"):
            away = np.abs(centre - lower) / (upper - lower)
            wide = scale / (upper - lower)
        if not ((away <= FARTHEST) & (wide >= 1 / FARTHEST) & (wide <= FARTHEST)).all():
            raise UserError(
                f"centre must lie within {FARTHEST:g} ranges of the bounds, scale"
                f" between 1/{FARTHEST:g} and {FARTHEST:g} of a range, for every"
                " feature."
            )
        return params | {name: value.tolist() for name, value in values.items()}

    def directions(self, task: Task, cube: Array) -> Array:
        """Return the direction u of each record, (n, d + 1)."""
        p = task.params
        lower, upper = np.array([feature[1:] for feature in task.features]).T
        scale = np.array(p["scale"])
        z = cube * ((upper - lower) / scale) + (lower - np.array(p["centre"])) / scale
        size = np.sqrt((z**2).sum(axis=1, keepdims=True))
        z = z * np.minimum(1, p["cut"] / np.maximum(size, p["cut"]))
        v = np.column_stack([np.full(len(z), p["cut"]), z])
        return np.asarray(v / np.sqrt((v**2).sum(axis=1, keepdims=True)))

    def length(self, task: Task) -> int:
        """Return K p numbers, plus p (p + 1) / 2 in arm ``joint``; p = d + 1."""
        return len(task.classes) * (task.d + 1) + self._pair_count(task)

    @staticmethod
    def _pair_count(task: Task) -> int:
        """Return the number of entries of the upper triangle."""
        p = task.d + 1
        return p * (p + 1) // 2 if task.params["arm"] == "joint" else 0

    def _class_share(self, task: Task) -> float:
        """Return the class sums' share of the squared norm."""
        return float(task.params["share"]) if task.params["arm"] == "joint" else 1.0

    def unit(self, task: Task) -> float:
        """Return 2^20 times the root of the class sums' share."""
        return UNIT * math.sqrt(self._class_share(task))

    def sensitivity(self, task: Task) -> float:
        """Return 2^20 sqrt 2, with the rounding of two records to whole steps."""
        numbers = task.d + 1 + self._pair_count(task)
        return UNIT * math.sqrt(2) + math.sqrt(2 * numbers)

    def sums(self, task: Task, cube: Array, codes: Steps) -> Steps:
        """Return the sums of rounded records, class after class, then the pairs."""
        total = np.zeros(self.length(task), dtype=np.int64)
        for start in range(0, len(cube), _BLOCK):
            part = slice(start, start + _BLOCK)
            u = self.directions(task, cube[part])
            steps = np.rint(u * self.unit(task)).astype(np.int64)
            sums = [
                steps[codes[part] == k].sum(axis=0) for k in range(len(task.classes))
            ]
            if self._pair_count(task):
                rows, columns, weight = self._triangle(task)
                scale = UNIT * math.sqrt(1 - self._class_share(task))
                pairs = u[:, rows] * u[:, columns] * weight * scale
                sums.append(np.rint(pairs).astype(np.int64).sum(axis=0))
            total += np.concatenate(sums)
        return total

    @staticmethod
    def _triangle(task: Task) -> tuple[Steps, Steps, Array]:
        """Return rows, columns and weights of the upper triangle's entries."""
        rows, columns = np.triu_indices(task.d + 1)
        return rows, columns, np.where(rows == columns, 1.0, math.sqrt(2))

    def weights(self, task: Task, values: Array) -> Array:
        """Return the sum of u over each class, (K, p)."""
        k, p = len(task.classes), task.d + 1
        return values[: k * p].reshape(k, p) / self.unit(task)

    def side(self, task: Task, release: NoisedSums) -> Contrasts:
        """Return the contrasts, with the second moment of arm ``joint``."""
        contrasts = super().side(task, release)
        if not self._pair_count(task):
            return contrasts
        scale = UNIT * math.sqrt(1 - self._class_share(task)) * release.n
        noise = (release.sigma / scale) ** 2
        values = release.values / scale
        k, p = len(task.classes), task.d + 1
        rows, columns, weight = self._triangle(task)
        second = np.zeros((p, p))
        second[rows, columns] = second[columns, rows] = values[k * p :] / weight
        return replace(contrasts, second=second, second_noise=noise)

    def product(self, task: Task, cube: Array, weights: Array) -> Array:
        """Return u(x) . w, (q, r)."""
        return np.asarray(self.directions(task, cube) @ weights.T)

    def reference(self, task: Task, weights: Array) -> Array:
        """Return the first coordinate of each row: u of the centre."""
        return np.asarray(weights[:, 0])

    def constant(self, task: Task) -> Array:
        """Return the weights of u's first coordinate."""
        return np.asarray(np.eye(1, task.d + 1)[0])

    def main(self, task: Task) -> Array:
        """Return the directions of the slopes."""
        return np.eye(task.d + 1)[:, 1:]

    def direction_variances(self, task: Task) -> Array:
        """Return the mean squares of the slopes."""
        return self.public(task)[1:]

    def odds(self, task: Task, main: Array, noise: float) -> float:
        """Return 1 for arm ``joint``: ridge regression has divided by the variance."""
        return 1.0 if self._pair_count(task) else super().odds(task, main, noise)

    def refined(self, task: Task, sides: Sequence[Contrasts], shares: Array) -> Refine:
        """Return ridge regression by the pooled second moment of arm ``joint``."""
        if not self._pair_count(task):
            return super().refined(task, sides, shares)
        return ridge_refinement(sides, shares, self.public(task))

    def public(self, task: Task) -> Array:
        """Return the diagonal of E u u' for records uniform on the bounds."""
        points = np.random.default_rng(task.seed).random((_REFERENCE, task.d))
        return np.asarray((self.directions(task, points) ** 2).mean(axis=0))
