"""Branch and bound: brackets of what a model answers under a law, at any time valid.

An oracle says of a box whether one class is answered in all of it. Boxes of which it
cannot are split, those of the largest probability first, until what is open is small.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from curvote.utility.engines.boxes import Boxes, Weigh, filled, halves, middles
from curvote.utility.engines.snapping import Snap, nothing_off
from curvote.validate import FloatArray

# Boxes for which an oracle is asked at once: more would not stay near the processor.
AT_ONCE = 1 << 12
# The part of all boxes that is split in one pass.
PASS = 0.5
FEWEST = 32
# A box waits for the next pass if its weight is below this share of the heaviest's.
LIGHT = 0.1

Rows = NDArray[np.intp]
Settled = Callable[[Rows, Boxes, FloatArray], NDArray[np.bool_]]


@dataclass(frozen=True)
class Verdict:
    """What an oracle says of m boxes.

    Where ``certain`` (m,) the class ``answer`` (m,) is answered everywhere in the box;
    elsewhere it is a guess. ``effect`` (m, s) says how much of the doubt comes from
    each coordinate; negative: splitting it cannot help.
    """

    answer: NDArray[np.int64]
    certain: NDArray[np.bool_]
    effect: FloatArray


class Oracle(ABC):
    """What is certain about a model's answers in boxes around n records."""

    n_classes: int

    @abstractmethod
    def judged(
        self, who: NDArray[np.intp], low: FloatArray, high: FloatArray
    ) -> Verdict:
        """Judge the closed boxes ``low`` to ``high`` (m, s) of records ``who`` (m,)."""

    def cut(
        self, axis: NDArray[np.int64], low: FloatArray, high: FloatArray
    ) -> FloatArray:
        """Return where to cut sides ``low`` < ``high`` (m,) of coordinates ``axis``.

        Each at ``low`` or above it and below ``high``.
        """
        del axis
        return middles(low, high)


def judged(
    oracle: Oracle, who: NDArray[np.intp], boxes: Boxes, which: NDArray[np.bool_]
) -> Boxes:
    """Return the boxes with the oracle's verdict on those in ``which`` (n, m)."""
    rows, columns = np.nonzero(which)
    answer, certain = boxes.answer.copy(), boxes.certain.copy()
    axis = boxes.axis.copy()
    for start in range(0, len(rows), AT_ONCE):
        at = rows[start : start + AT_ONCE], columns[start : start + AT_ONCE]
        low, high = boxes.low[at], boxes.high[at]
        verdict = oracle.judged(who[at[0]], low, high)
        answer[at], certain[at] = verdict.answer, verdict.certain
        axis[at] = _axis(verdict.effect, low, high)
    return replace(boxes, answer=answer, certain=certain, axis=axis)


def _axis(effect: FloatArray, low: FloatArray, high: FloatArray) -> NDArray[np.int64]:
    """Return the coordinate with the largest effect that has any width, else -1.

    One without an end comes before all.
    """
    known = np.nan_to_num(effect, posinf=1e300)
    endless = np.isinf(high - low) & (known >= 0)
    wide = np.where(endless, np.inf, np.where(high > low, known, -1.0))
    return np.where((wide >= 0).any(axis=1), wide.argmax(axis=1), -1)


@dataclass(frozen=True)
class Search:
    """A search around the records ``who`` (n,) of an oracle; heavy boxes come first.

    ``snap`` takes off what weighs nothing.
    """

    oracle: Oracle
    who: NDArray[np.intp]
    weigh: Weigh
    snap: Snap = nothing_off

    def snapped(self, boxes: Boxes) -> Boxes:
        """Return the boxes without what weighs nothing, judged anew where open."""
        found = self.snap(np.arange(boxes.n), boxes)
        moved = (found.low != boxes.low) | (found.high != boxes.high)
        again = moved.any(axis=2) & ~boxes.certain
        return judged(self.oracle, self.who, found, again)

    def refined(
        self, boxes: Boxes, settled: Settled, most: int
    ) -> tuple[Boxes, FloatArray]:
        """Return the boxes, split until each record is settled, and their weights.

        At most ``most`` boxes of each record. ``settled`` takes the places in ``who``
        of some records, their boxes and weights, and says so for each.
        """
        rows = np.arange(boxes.n)
        weights = self.weigh(rows, boxes.low, boxes.high)
        done = [(rows[:0], boxes.of(rows < 0), weights[:0])]
        while len(rows):
            waiting = self._waiting(rows, boxes, weights, settled)
            active = (waiting > 0).any(axis=1) & np.array(boxes.m < most)
            done.append((rows[~active], boxes.of(~active), weights[~active]))
            rows, boxes, weights = rows[active], boxes.of(active), weights[active]
            if len(rows):
                size = min(most - boxes.m, max(FEWEST, int(PASS * boxes.m)))
                columns = _heaviest(waiting[active], size)
                real = np.take_along_axis(waiting[active], columns, axis=1) > 0
                boxes, weights = self._split(rows, boxes, weights, columns, real)
        return _together(done)

    def _waiting(
        self, rows: Rows, boxes: Boxes, weights: FloatArray, settled: Settled
    ) -> FloatArray:
        """Return the weights of the boxes to be split next, 0 for all others."""
        waiting = weights * (~boxes.certain & (boxes.axis >= 0))
        waiting[settled(rows, boxes, weights)] = 0.0
        light = waiting < LIGHT * waiting.max(axis=1, keepdims=True, initial=0.0)
        return np.where(light, 0.0, waiting)

    def _split(
        self,
        rows: Rows,
        boxes: Boxes,
        weights: FloatArray,
        columns: Rows,
        real: NDArray[np.bool_],
    ) -> tuple[Boxes, FloatArray]:
        """Return the boxes and weights, those ``real`` of the columns split in two."""
        first, more = (
            judged(self.oracle, self.who[rows], self.snap(rows, part), real)
            for part in self._children(boxes.taken(columns), real)
        )
        lighter, added = (
            self.weigh(rows, part.low, part.high) for part in (first, more)
        )
        weights = np.concatenate([weights, added], axis=1)
        np.put_along_axis(weights, columns, lighter, axis=1)
        return boxes.replaced(columns, first, more), weights

    def _children(self, boxes: Boxes, real: NDArray[np.bool_]) -> tuple[Boxes, Boxes]:
        axis = boxes.axis[real]
        side = np.arange(len(axis)), axis
        cut = np.zeros(real.shape)
        cut[real] = self.oracle.cut(axis, boxes.low[real][side], boxes.high[real][side])
        return halves(boxes, real, cut)


def _heaviest(waiting: FloatArray, most: int) -> NDArray[np.intp]:
    """Return the columns (n, k) of each row's heaviest boxes, k at most ``most``."""
    k = min(most, int((waiting > 0).sum(axis=1).max()))
    return np.argpartition(-waiting, k - 1, axis=1)[:, :k]


def _together(
    done: list[tuple[Rows, Boxes, FloatArray]],
) -> tuple[Boxes, FloatArray]:
    """Return the boxes and weights of all rows, shorter rows filled up."""
    n, m = sum(len(rows) for rows, _, _ in done), max(each.m for _, each, _ in done)
    boxes, weights = filled(n, m, done[0][1].low.shape[2]), np.zeros((n, m))
    for rows, some, theirs in done:
        weights[rows, : some.m] = theirs
        for part, given in zip(boxes.parts(), some.parts(), strict=True):
            part[rows, : some.m] = given
    return boxes, weights
