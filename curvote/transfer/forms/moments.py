"""Form `moments`: the sum of u over each class, u the direction of a record.

u = (s, z) / |(s, z)|, z the features by a public centre and scale, cut to |z| <= s: so
|u| = 1, inner products are nowhere negative, and replacing a record moves the sums of
all classes together by at most sqrt 2. Arm ``joint`` adds the sum of u u', of norm 1
as well; the two parts share the one square, so the sensitivity stays sqrt 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from curvote import validate
from curvote.chain.settings import Numbers, Strict
from curvote.errors import UserError
from curvote.transfer.forms.base import Array, ClassSums, Refine, Steps
from curvote.transfer.ridge import ridge

if TYPE_CHECKING:
    from curvote.transfer.releasing import Release
    from curvote.transfer.sides import Side
    from curvote.transfer.task import Task

# Steps to 1: so fine that rounding adds nothing that could be seen.
ONE = 1 << 20
# Parameters far from 1 would leave of a direction what rounding makes of it.
FAR = 1000.0
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
    cut: Annotated[float, Field(ge=1 / FAR, le=FAR)] = 1.6
    share: Annotated[float, Field(ge=0.01, le=0.99)] = 0.6


class Moments(ClassSums):
    """The class sums, a class after the other, then the upper triangle of u u'."""

    name = "moments"
    Parameters = Parameters

    def settled(self, task: Task, params: dict[str, Any]) -> dict[str, Any]:
        """Return centre and scale of every feature; other lengths: UserError."""
        lower, upper = np.array([each[1:] for each in task.features]).T
        usual = {"centre": (lower + upper) / 2, "scale": (upper - lower) / 2}
        for name in usual:
            if params[name] is not None:
                usual[name] = _spread(name, params[name], task.d)
        _refuse_far(usual["centre"], usual["scale"], lower, upper)
        return params | {name: value.tolist() for name, value in usual.items()}

    def directions(self, task: Task, cube: Array) -> Array:
        """Return u of each record, (n, d + 1)."""
        p = task.params
        lower, upper = np.array([each[1:] for each in task.features]).T
        scale = np.array(p["scale"])
        z = cube * ((upper - lower) / scale) + (lower - np.array(p["centre"])) / scale
        size = np.sqrt((z**2).sum(axis=1, keepdims=True))
        z = z * np.minimum(1, p["cut"] / np.maximum(size, p["cut"]))
        v = np.column_stack([np.full(len(z), p["cut"]), z])
        return np.asarray(v / np.sqrt((v**2).sum(axis=1, keepdims=True)))

    def length(self, task: Task) -> int:
        """Return K p numbers, and p (p + 1) / 2 more in arm ``joint``; p = d + 1."""
        return len(task.classes) * (task.d + 1) + self._pairs(task)

    @staticmethod
    def _pairs(task: Task) -> int:
        p = task.d + 1
        return p * (p + 1) // 2 if task.params["arm"] == "joint" else 0

    def _share(self, task: Task) -> float:
        return float(task.params["share"]) if task.params["arm"] == "joint" else 1.0

    def unit(self, task: Task) -> float:
        """Return 2^20 times the root of the class sums' share."""
        return ONE * math.sqrt(self._share(task))

    def sensitivity(self, task: Task) -> float:
        """Return 2^20 sqrt 2, and what rounding two records to whole steps adds."""
        numbers = task.d + 1 + self._pairs(task)
        return ONE * math.sqrt(2) + math.sqrt(2 * numbers)

    def sums(self, task: Task, cube: Array, codes: Steps) -> Steps:
        """Return the sums of rounded records, class after class, then the pairs."""
        total = np.zeros(self.length(task), dtype=np.int64)
        for start in range(0, len(cube), _BLOCK):
            part = slice(start, start + _BLOCK)
            total += self._sums(task, cube[part], codes[part])
        return total

    def _sums(self, task: Task, cube: Array, codes: Steps) -> Steps:
        u = self.directions(task, cube)
        steps = np.rint(u * self.unit(task)).astype(np.int64)
        own = [steps[codes == k].sum(axis=0) for k in range(len(task.classes))]
        return np.concatenate([*own, self._summed_pairs(task, u)])

    def _summed_pairs(self, task: Task, u: Array) -> Steps:
        if not self._pairs(task):
            return np.zeros(0, dtype=np.int64)
        rows, columns, weight = self._triangle(task)
        scale = ONE * math.sqrt(1 - self._share(task))
        pairs = u[:, rows] * u[:, columns] * weight * scale
        return np.asarray(np.rint(pairs).astype(np.int64).sum(axis=0))

    @staticmethod
    def _triangle(task: Task) -> tuple[Steps, Steps, Array]:
        """Return the pairs of the upper triangle; those beside the diagonal count 2."""
        rows, columns = np.triu_indices(task.d + 1)
        return rows, columns, np.where(rows == columns, 1.0, math.sqrt(2))

    def weights(self, task: Task, values: Array) -> Array:
        """Return the sum of u over each class, (K, p)."""
        k, p = len(task.classes), task.d + 1
        return values[: k * p].reshape(k, p) / self.unit(task)

    def side(self, task: Task, told: Release) -> Side:
        """Return the contrasts, with the second moment of arm ``joint``."""
        side = super().side(task, told)
        if not self._pairs(task):
            return side
        scale = ONE * math.sqrt(1 - self._share(task)) * told.n
        noise = (told.sigma / scale) ** 2
        second = self._whole(task, told.values / scale)
        return replace(side, second=second, second_noise=noise)

    def _whole(self, task: Task, values: Array) -> Array:
        """Return the matrix (p, p) whose upper triangle was released."""
        k, p = len(task.classes), task.d + 1
        rows, columns, weight = self._triangle(task)
        whole = np.zeros((p, p))
        whole[rows, columns] = whole[columns, rows] = values[k * p :] / weight
        return whole

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
        """Return those of the slopes."""
        return np.eye(task.d + 1)[:, 1:]

    def spreads(self, task: Task) -> Array:
        """Return the mean squares of the slopes."""
        return self.public(task)[1:]

    def odds(self, task: Task, main: Array, noise: float) -> float:
        """Return 1 for arm ``joint``: ridge regression has divided by the variance."""
        return 1.0 if self._pairs(task) else super().odds(task, main, noise)

    def refined(self, task: Task, sides: Sequence[Side], shares: Array) -> Refine:
        """Return ridge regression by the pooled second moment of arm ``joint``."""
        if not self._pairs(task):
            return super().refined(task, sides, shares)
        return ridge(sides, shares, self.public(task))

    def public(self, task: Task) -> Array:
        """Return the diagonal of E u u' for records that are uniform on the bounds."""
        points = np.random.default_rng(task.seed).random((_REFERENCE, task.d))
        return np.asarray((self.directions(task, points) ** 2).mean(axis=0))


def _spread(name: str, given: float | list[float], d: int) -> Array:
    """Return one number for each feature; another count of them is a UserError."""
    values = validate.finite(**{name: given})
    if values.size not in {1, d}:
        raise UserError(f"{name} has {values.size} numbers for {d} features.")
    return np.asarray(np.broadcast_to(values.ravel(), d))


def _refuse_far(centre: Array, scale: Array, lower: Array, upper: Array) -> None:
    """Refuse what no feature has, as a direction that is none hides nothing."""
    with np.errstate(over="ignore"):
        away = np.abs(centre - lower) / (upper - lower)
        wide = scale / (upper - lower)
    if not ((away <= FAR) & (wide >= 1 / FAR) & (wide <= FAR)).all():
        raise UserError(
            f"centre must lie within {FAR:g} ranges of the bounds, scale between"
            f" 1/{FAR:g} and {FAR:g} of a range, for every feature."
        )
