"""Scores of classes as quadratics of the sensitive values; the largest one answers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product as every

import numpy as np
from numpy.typing import NDArray

from curvote.base.validate import FloatArray


@dataclass(frozen=True)
class ScoreLine:
    """Scores of K classes as quadratics of one value, for n records, m settings.

    ``constant`` and ``linear`` are (n, m, K), ``square`` is (K,).
    """

    constant: FloatArray
    linear: FloatArray
    square: FloatArray

    def at(self, values: FloatArray) -> FloatArray:
        """Return the scores at ``values`` (n, m), (n, m, K)."""
        v = values[..., None]
        return np.asarray(self.constant + (self.linear + self.square * v) * v)

    @property
    def straight(self) -> bool:
        """Whether the scores differ by straight lines only."""
        return bool((self.square == self.square[0]).all())


@dataclass(frozen=True)
class Scores:
    """Scores of K classes: constant + v @ linear + v' square v, v (s,) sensitive.

    ``constant`` (n, K); ``linear`` (n, s, K), or (1, s, K) where records share it;
    ``square`` (s, s, K), symmetric. The largest score answers;
    of equal ones the first, as argmax has it.
    """

    constant: FloatArray
    linear: FloatArray
    square: FloatArray

    @property
    def s(self) -> int:
        """Number of sensitive values."""
        return int(self.square.shape[0])

    @property
    def curved(self) -> bool:
        """Whether some scores differ by more than straight lines."""
        return bool((self.square != self.square[..., :1]).any())

    @property
    def classes(self) -> int:
        """Number of classes K."""
        return int(self.constant.shape[1])

    def at(self, values: FloatArray) -> FloatArray:
        """Return the scores at ``values`` (n, s), (n, K)."""
        linear = np.broadcast_to(self.linear, (len(values), *self.linear.shape[1:]))
        straight = np.einsum("ns,nsk->nk", values, linear)
        quadratic = np.einsum("ns,nt,stk->nk", values, values, self.square)
        return np.asarray(self.constant + straight + quadratic)

    def places(self, values: FloatArray) -> NDArray[np.int64]:
        """Return the class indices of the answers at ``values`` (n, s), (n,)."""
        return np.asarray(np.argmax(self.at(values), axis=1), dtype=np.int64)

    def of(self, rows: slice | NDArray[np.intp]) -> Scores:
        """Return the scores of some records."""
        shared = len(self.linear) == 1
        linear = self.linear if shared else self.linear[rows]
        return Scores(self.constant[rows], linear, self.square)

    def fix_values(self, values: FloatArray, free: list[int]) -> Scores:
        """Return the scores of the ``free`` values, the others fixed at ``values``.

        What stands in ``values`` for the free ones does not matter.
        """
        fixed = np.array(values, dtype=np.float64)
        fixed[:, free] = 0.0
        linear = self.linear + 2 * np.einsum("nt,stk->nsk", fixed, self.square)
        constant = self.at(fixed)
        return Scores(constant, linear[:, free], self.square[np.ix_(free, free)])

    def along(self, place: int, other: int, at: FloatArray) -> ScoreLine:
        """Return the scores along a value, the ``other`` one at ``at`` (n, m)."""
        v = at[..., None]
        first, second = self.linear[:, None, other], self.linear[:, None, place]
        constant = (first + self.square[other, other] * v) * v
        constant += self.constant[:, None]
        cross = self.square[place, other]
        linear = second + 2 * cross * v if cross.any() else second
        return ScoreLine(constant, linear, self.square[place, place])

    def alone(self) -> ScoreLine:
        """Return the scores along their only value, m = 1."""
        return ScoreLine(self.constant[:, None], self.linear, self.square[0, 0])

    def active_values(self) -> list[int]:
        """Return the indices of values that move some difference of scores."""
        curved = (self.square != self.square[..., :1]).any(axis=(1, 2))
        straight = (self.linear != self.linear[..., :1]).any(axis=(0, 2))
        return [int(i) for i in np.flatnonzero(curved | straight)]


def class_wins(
    scores: Scores, clean: NDArray[np.int64], low: FloatArray, high: FloatArray
) -> NDArray[np.bool_]:
    """Return for each record whether class ``clean`` (n,) wins in its whole box.

    The box is ``low`` to ``high``, (n, s). A tie is won by the first class.
    """
    free = scores.active_values()
    scores = scores.fix_values(np.zeros_like(low), free)
    low, high = low[:, free], high[:, free]
    wins = np.ones(len(clean), dtype=bool)
    for first, second in every(range(scores.classes), repeat=2):
        if first != second:
            lead = least_lead(scores, first, second, low, high)
            won = lead >= 0 if first < second else lead > 0
            wins &= won | (clean != first)
    return wins


def least_lead(
    scores: Scores, first: int, second: int, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the least lead of one class over another in each box, (n,).

    Exact for straight lines, for sums of one-value terms, and for two values; else
    nothing is above it.
    """
    constant, linear, square = (
        part[..., first] - part[..., second]
        for part in (scores.constant, scores.linear, scores.square)
    )
    linear = np.broadcast_to(linear, low.shape)
    if not (square - np.diag(np.diag(square))).any():
        return np.asarray(
            constant + _least_separable(linear, np.diag(square), low, high)
        )
    edges = []
    for place, end in every((0, 1), (low, high)):
        v, free = end[:, place], 1 - place
        along = linear[:, [free]] + 2 * square[0, 1] * v[:, None]
        edge_part = (linear[:, place] + square[place, place] * v) * v
        box = low[:, [free]], high[:, [free]]
        edges.append(edge_part + _least_separable(along, square[[free], [free]], *box))
    bottom = _stationary_value(linear, square, low, high)
    return np.asarray(constant + np.asarray(np.min([*edges, bottom], axis=0)))


def _least_separable(
    linear: FloatArray, square: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the least of sum of linear v + square v^2, value by value."""
    with np.errstate(divide="ignore", invalid="ignore"):
        bottom = np.where(square > 0, np.clip(-linear / (2 * square), low, high), low)
    values = [(linear + square * v) * v for v in (low, high, bottom)]
    return np.asarray(np.min(values, axis=0).sum(axis=1))


def _stationary_value(
    linear: FloatArray, square: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the value at the stationary point, infinite outside the box."""
    if np.linalg.det(square) <= 0:
        return np.full(len(linear), np.inf)
    at = np.linalg.solve(2 * square, -linear.T).T
    inside = ((at >= low) & (at <= high)).all(axis=1)
    return np.where(inside, np.einsum("ns,ns->n", linear, at) / 2, np.inf)
