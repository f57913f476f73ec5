"""Ridge regression on pooled contrasts and a pooled second moment of known noise.

What `curvote.learning.directions` does with the means of private reports is done here
with those of servers: both are unbiased, of known variance.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.chain.settings import Numbers, Strict
from curvote.learning import directions
from curvote.systems.transfer.method.task import (
    CENTRING,
    Array,
    ClassSums,
    Contrasts,
    NoisedSums,
    Refine,
    Steps,
    Task,
    counted_rates,
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


@dataclass(frozen=True)
class Centred:
    """Map from contrast rows (r, p) to rows whose decisions lie at the centre.

    The centre is where a balanced decision between classes of one spread is made: m_j
    + mean_k d_k - sum_k p_jk d_k, m_j the mean of server j, p_j its rates, d_k = mu_k -
    mu from all servers. The target's own is drawn to that of the others, which
    ``shares`` weigh, as far as both may be one but for known errors, and then to the
    centre of the bounds (James & Stein 1961 both times). Where second moments are
    released, rows become those of the discriminant W^-1 (mu_c - mu), W the scatter
    within classes.
    """

    sides: Sequence[Contrasts]
    shares: Array
    target: int

    def __call__(self, rows: Array) -> Array:
        """Return the rows, (r, p)."""
        slopes = rows[:, 1:] @ self.inverse
        return np.column_stack([-slopes @ self.centre / FIRST, slopes])

    def _mean(self, name: str) -> Array:
        """Return the weighted mean of what the servers say."""
        return np.tensordot(self.shares, [getattr(s, name) for s in self.sides], 1)

    @cached_property
    def differences(self) -> Array:
        """Pooled differences mu_k - mu of every class, (K, d)."""
        rows, rates = self._mean("main"), self._mean("rates")
        rows = np.concatenate([-rows, rows]) if len(rows) == 1 else rows
        return np.asarray(rows / rates[:, np.newaxis])

    @cached_property
    def centre(self) -> Array:
        """Return the centre (d,) in the units of directions."""
        shift, d = self.differences, self.differences.shape[1]
        centres = np.array(
            [s.centre + shift.mean(axis=0) - s.rates @ shift for s in self.sides]
        )
        noise = np.array([side.centre_noise for side in self.sides])
        error = noise + SQUARE / d / np.array([side.n for side in self.sides])
        centre, hidden = centres[self.target], noise[self.target]
        shares = np.where(np.arange(len(noise)) == self.target, 0, self.shares)
        if shares.any():
            shares = shares / shares.sum()
            apart = shares @ centres - centre
            common, alone = float(shares**2 @ error), error[self.target]
            gap = max(float(apart @ apart) / d - common - alone, 0.0)
            part = alone / (alone + common + gap)
            centre = centre + part * apart
            hidden = (1 - part) ** 2 * hidden + part**2 * float(shares**2 @ noise)
        return np.asarray(centre * directions.shrink_factor(centre, d * hidden))

    @cached_property
    def inverse(self) -> Array:
        """Return W^-1 (d, d), 1 where there is no second moment.

        The scatter of all is W and what class means add to it.
        """
        contrasts, d = self._mean("main"), self.differences.shape[1]
        if self.sides[0].second is None:
            return np.eye(d)
        n = np.array([side.n for side in self.sides])
        # A number's square is SQUARE/d in the mean at most; of normal numbers a product
        # has twice its square as variance, which n records divide.
        error = [s.second_noise for s in self.sides] + 2 * (SQUARE / d) ** 2 / n
        scatter = directions.shrink_scatter(
            self._mean("second"), float(self.shares**2 @ error), SQUARE * FLOOR / d
        )
        error = np.array([s.noise + s.sampling / SQUARE / d for s in self.sides])
        second = directions.SecondMoment(FIRST**2, np.zeros(d), scatter)
        hidden = float(self.shares**2 @ error)
        labels = np.insert(contrasts, 0, 0, axis=1)[:, np.newaxis]
        moments = (directions.NoisyMoments(label, hidden, second) for label in labels)
        ridge = np.mean([directions.ridge_penalty(row)[0] for row in moments])
        inverse = np.linalg.inv(scatter + ridge * np.eye(d))
        means = self.differences[-len(contrasts) :]
        if len(contrasts) == 1:  # between the two classes
            means = means / (1 - self._mean("rates")[-1])
        between = float((contrasts @ inverse * means).sum())
        return np.asarray(inverse / max(1 - between, directions.LEAST_WITHIN))


# Of a direction that counts its class: its first number, and the most that the squares
# of all others add up to.
FIRST, SQUARE = math.sqrt(0.5), 0.5
# A deviation of which nothing is known is a third of half the range (derived).
DEVIATION = 1 / 3
# Numbers spread by at least this part of what fits (a deviation of .2 half ranges).
FLOOR = 0.05
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
    ``centring: sums`` takes the centre of records from the sums: then u is (1, z/s) /
    sqrt 2, which counts, z cut to |z| <= s = cut (1 + sqrt d)/4, and what is released
    beside the class sums are the products of the numbers of z/s alone.
    """

    arm: Literal["mean", "joint"] = "mean"
    centre: Numbers | None = None
    scale: Numbers | None = None
    cut: Annotated[float, Field(ge=1 / FARTHEST, le=FARTHEST)] = 1.6
    share: Annotated[float, Field(ge=0.01, le=0.99)] = 0.6
    centring: Literal["sums"] | None = None


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
        s, size = self._cut(task), np.sqrt((z**2).sum(axis=1, keepdims=True))
        if CENTRING in p:
            v = z * (FIRST / np.maximum(size, s))
            return np.column_stack([np.full(len(v), FIRST), v])
        z = z * np.minimum(1, s / np.maximum(size, s))
        v = np.column_stack([np.full(len(z), s), z])
        return np.asarray(v / np.sqrt((v**2).sum(axis=1, keepdims=True)))

    @staticmethod
    def _cut(task: Task) -> float:
        """Return the length s to which z is cut."""
        cut = float(task.params["cut"])
        return cut * (1 + math.sqrt(task.d)) / 4 if CENTRING in task.params else cut

    def length(self, task: Task) -> int:
        """Return K p numbers, plus p (p + 1) / 2 in arm ``joint``; p = d + 1.

        Where the centre is taken from the sums, pairs are of d numbers.
        """
        return len(task.classes) * (task.d + 1) + self._pair_count(task)

    def _pair_count(self, task: Task) -> int:
        """Return the number of entries of the upper triangle."""
        paired = task.d + 1 - self._paired(task).start
        return paired * (paired + 1) // 2 if task.params["arm"] == "joint" else 0

    @staticmethod
    def _paired(task: Task) -> slice:
        """Return which numbers of u are multiplied with each other."""
        return slice(int(CENTRING in task.params), task.d + 1)

    def _pair_unit(self, task: Task) -> float:
        """Return the steps of a pair: as many as one record may move (`sensitivity`).

        Products of v are at most half as long as those of u: 2 for 1.
        """
        factor = 2 if CENTRING in task.params else 1
        return UNIT * math.sqrt(1 - self._class_share(task)) * factor

    def _class_share(self, task: Task) -> float:
        """Return the class sums' share of the squared norm."""
        return float(task.params["share"]) if task.params["arm"] == "joint" else 1.0

    def unit(self, task: Task) -> float:
        """Return 2^20 times the root of the class sums' share."""
        return UNIT * math.sqrt(self._class_share(task))

    def sensitivity(self, task: Task) -> float:
        """Return 2^20 sqrt 2, with the rounding of two records to whole steps.

        With the products of v: a the share of the class sums, c = <v, v'>, |v| = |v'| =
        1/sqrt 2 (shorter ones move less), records of one class are a (1 - 2 c) + 4 (1 -
        a) (1/2 - 2 c^2) apart, squared, at most 2 - a/2 or 2 a; of two classes 2 a + 4
        (1 - a) (1/2 - 2 c^2), at most 2.
        """
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
                v, scale = u[:, self._paired(task)], self._pair_unit(task)
                pairs = v[:, rows] * v[:, columns] * weight * scale
                sums.append(np.rint(pairs).astype(np.int64).sum(axis=0))
            total += np.concatenate(sums)
        return total

    def _triangle(self, task: Task) -> tuple[Steps, Steps, Array]:
        """Return rows, columns and weights of the upper triangle's entries."""
        rows, columns = np.triu_indices(task.d + 1 - self._paired(task).start)
        return rows, columns, np.where(rows == columns, 1.0, math.sqrt(2))

    def weights(self, task: Task, values: Array) -> Array:
        """Return the sum of u over each class, (K, p)."""
        k, p = len(task.classes), task.d + 1
        return values[: k * p].reshape(k, p) / self.unit(task)

    def side(self, task: Task, release: NoisedSums) -> Contrasts:
        """Return the contrasts, with the second moment of arm ``joint``."""
        contrasts, centring = super().side(task, release), CENTRING in task.params
        k, p = len(task.classes), task.d + 1
        if centring:
            sums = self.weights(task, release.values / release.n)
            noise = (release.sigma / self.unit(task) / release.n) ** 2
            contrasts = replace(
                contrasts,
                spread=SQUARE**2,
                centre=sums[:, 1:].sum(axis=0),
                centre_noise=k * noise,
                rate_noise=noise / FIRST**2,
            )
        if not self._pair_count(task):
            return contrasts
        scale = self._pair_unit(task) * release.n
        noise = (release.sigma / scale) ** 2
        values = release.values / scale
        rows, columns, weight = self._triangle(task)
        second = np.zeros((1 + rows.max(), 1 + rows.max()))
        second[rows, columns] = second[columns, rows] = values[k * p :] / weight
        if contrasts.centre is not None:  # around the server's own mean
            second += contrasts.centre_noise * np.eye(task.d)
            second -= np.outer(contrasts.centre, contrasts.centre)
        return replace(contrasts, second=second, second_noise=noise)

    def product(self, task: Task, cube: Array, weights: Array) -> Array:
        """Return u(x) . w, (q, r)."""
        return np.asarray(self.directions(task, cube) @ weights.T)

    def reference(self, task: Task, weights: Array) -> Array:
        """Return the first coordinate of each row, times that of the centre's u."""
        return np.asarray(weights[:, 0] * (FIRST if CENTRING in task.params else 1))

    def rates(self, task: Task, sums: Array) -> Array:
        """Return the classes' shares, by what counts where the task has it."""
        if CENTRING not in task.params:
            return super().rates(task, sums)
        return counted_rates(sums[:, 0] / FIRST)

    def constant(self, task: Task) -> Array:
        """Return the weights of a function that is 1 at the centre."""
        first = FIRST if CENTRING in task.params else 1
        return np.asarray(np.eye(1, task.d + 1)[0] / first)

    def main(self, task: Task) -> Array:
        """Return the directions of the slopes."""
        return np.eye(task.d + 1)[:, 1:]

    def direction_variances(self, task: Task) -> Array:
        """Return the mean squares of the slopes, those within a class where known."""
        if CENTRING in task.params:
            return np.full(task.d, (DEVIATION * FIRST / self._cut(task)) ** 2)
        return self.public(task)[1:]

    def odds(self, task: Task, main: Array, noise: float) -> float:
        """Return 1 for arm ``joint``: ridge regression has divided by the variance."""
        return 1.0 if self._pair_count(task) else super().odds(task, main, noise)

    def refined(
        self, task: Task, sides: Sequence[Contrasts], shares: Array, target: int
    ) -> Refine:
        """Return ridge regression by the pooled second moment of arm ``joint``."""
        if CENTRING in task.params:
            return Centred(sides, shares, target)
        if not self._pair_count(task):
            return super().refined(task, sides, shares, target)
        return ridge_refinement(sides, shares, self.public(task))

    def public(self, task: Task) -> Array:
        """Return the diagonal of E u u' for records uniform on the bounds."""
        points = np.random.default_rng(task.seed).random((_REFERENCE, task.d))
        return np.asarray((self.directions(task, points) ** 2).mean(axis=0))
