"""Branch and bound on a model's answers under a law, with brackets valid at any time.

An oracle says of a box whether one class is answered in all of it. Boxes of which it
cannot are split, those of the largest probability first, until what is open is small.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from curvote.base.validate import FloatArray
from curvote.systems.utility.method.engines.boxes import (
    Boxes,
    BoxSnap,
    Weigher,
    cut_points,
    empty_boxes,
    keep_boxes,
    split_boxes,
)

# Boxes for which an oracle is asked at once: more would not stay near the processor.
ORACLE_BATCH = 1 << 12
# The part of all boxes that is split in one pass.
SPLIT_SHARE = 0.5
FEWEST = 32
# A box waits for the next pass if its weight is below this share of the heaviest's.
LIGHT_SHARE = 0.1

Rows = NDArray[np.intp]
SettledTest = Callable[[Rows, Boxes, FloatArray], NDArray[np.bool_]]


@dataclass(frozen=True)
class Verdict:
    """Verdict of an oracle on m boxes.

    Where ``certain`` (m,) the class ``answer`` (m,) is answered everywhere in the box;
    elsewhere it is a guess. ``effect`` (m, s) says how much of the doubt comes from
    each coordinate; negative: splitting it cannot help.
    """

    answer: NDArray[np.int64]
    certain: NDArray[np.bool_]
    effect: FloatArray


class Oracle(ABC):
    """Certain knowledge of a model's answers in boxes around n records."""

    n_classes: int

    @abstractmethod
    def judge(
        self, who: NDArray[np.intp], low: FloatArray, high: FloatArray
    ) -> Verdict:
        """Return the verdict on boxes ``low`` to ``high`` (m, s) of records ``who``."""

    def cut(
        self, axis: NDArray[np.int64], low: FloatArray, high: FloatArray
    ) -> FloatArray:
        """Return the cuts of sides ``low`` < ``high`` (m,) of coordinates ``axis``.

        Each at ``low`` or above it and below ``high``.
        """
        del axis
        return cut_points(low, high)


def judge_boxes(
    oracle: Oracle, who: NDArray[np.intp], boxes: Boxes, which: NDArray[np.bool_]
) -> Boxes:
    """Return the boxes with the oracle's verdict on those in ``which`` (n, m)."""
    rows, columns = np.nonzero(which)
    answer, certain = boxes.answer.copy(), boxes.certain.copy()
    axis = boxes.axis.copy()
    for start in range(0, len(rows), ORACLE_BATCH):
        at = rows[start : start + ORACLE_BATCH], columns[start : start + ORACLE_BATCH]
        low, high = boxes.low[at], boxes.high[at]
        verdict = oracle.judge(who[at[0]], low, high)
        answer[at], certain[at] = verdict.answer, verdict.certain
        finite_effect = np.nan_to_num(verdict.effect, posinf=1e300)
        endless = np.isinf(high - low) & (finite_effect >= 0)
        wide = np.where(endless, np.inf, np.where(high > low, finite_effect, -1.0))
        axis[at] = np.where((wide >= 0).any(axis=1), wide.argmax(axis=1), -1)
    return replace(boxes, answer=answer, certain=certain, axis=axis)


@dataclass(frozen=True)
class Search:
    """Search around the records ``who`` (n,) of an oracle, heaviest boxes first.

    ``snap`` takes off what weighs nothing.
    """

    oracle: Oracle
    who: NDArray[np.intp]
    weigh: Weigher
    snap: BoxSnap = keep_boxes

    def snap_boxes(self, boxes: Boxes) -> Boxes:
        """Return the boxes without their massless parts, judged again where open."""
        snapped = self.snap(np.arange(boxes.n), boxes)
        moved = (snapped.low != boxes.low) | (snapped.high != boxes.high)
        to_judge = moved.any(axis=2) & ~boxes.certain
        return judge_boxes(self.oracle, self.who, snapped, to_judge)

    def refined(
        self, boxes: Boxes, settled: SettledTest, most: int
    ) -> tuple[Boxes, FloatArray]:
        """Return boxes and weights, split until each record is settled.

        At most ``most`` boxes of each record. ``settled`` takes the places in ``who``
        of some records, their boxes and weights, and says so for each.
        """
        rows = np.arange(boxes.n)
        weights = self.weigh(rows, boxes.low, boxes.high)
        done = [(rows[:0], boxes.of(rows < 0), weights[:0])]
        while len(rows):
            waiting = self._weights_to_split(rows, boxes, weights, settled)
            active = (waiting > 0).any(axis=1) & np.array(boxes.m < most)
            done.append((rows[~active], boxes.of(~active), weights[~active]))
            rows, boxes, weights = rows[active], boxes.of(active), weights[active]
            if len(rows):
                size = min(most - boxes.m, max(FEWEST, int(SPLIT_SHARE * boxes.m)))
                columns = _heaviest(waiting[active], size)
                splits = np.take_along_axis(waiting[active], columns, axis=1) > 0
                boxes, weights = self._split(rows, boxes, weights, columns, splits)
        return _join_rows(done)

    def _weights_to_split(
        self, rows: Rows, boxes: Boxes, weights: FloatArray, settled: SettledTest
    ) -> FloatArray:
        """Return the weights of the boxes to be split next, 0 for all others."""
        waiting = weights * (~boxes.certain & (boxes.axis >= 0))
        waiting[settled(rows, boxes, weights)] = 0.0
        light = waiting < LIGHT_SHARE * waiting.max(axis=1, keepdims=True, initial=0.0)
        return np.where(light, 0.0, waiting)

    def _split(
        self,
        rows: Rows,
        boxes: Boxes,
        weights: FloatArray,
        columns: Rows,
        splits: NDArray[np.bool_],
    ) -> tuple[Boxes, FloatArray]:
        """Return boxes and weights with some columns split in two."""
        first, more = (
            judge_boxes(self.oracle, self.who[rows], self.snap(rows, part), splits)
            for part in self._cut_children(boxes.select_columns(columns), splits)
        )
        lighter, added = (
            self.weigh(rows, part.low, part.high) for part in (first, more)
        )
        weights = np.concatenate([weights, added], axis=1)
        np.put_along_axis(weights, columns, lighter, axis=1)
        return boxes.replace_columns(columns, first, more), weights

    def _cut_children(
        self, boxes: Boxes, splits: NDArray[np.bool_]
    ) -> tuple[Boxes, Boxes]:
        """Return both halves of each box to be split."""
        axis = boxes.axis[splits]
        side = np.arange(len(axis)), axis
        cut = np.zeros(splits.shape)
        cut[splits] = self.oracle.cut(
            axis, boxes.low[splits][side], boxes.high[splits][side]
        )
        return split_boxes(boxes, splits, cut)


def _heaviest(waiting: FloatArray, most: int) -> NDArray[np.intp]:
    """Return the columns (n, k) of each row's heaviest boxes, k at most ``most``."""
    k = min(most, int((waiting > 0).sum(axis=1).max()))
    return np.argpartition(-waiting, k - 1, axis=1)[:, :k]


def _join_rows(
    finished: list[tuple[Rows, Boxes, FloatArray]],
) -> tuple[Boxes, FloatArray]:
    """Return the boxes and weights of all rows, shorter rows padded."""
    n, m = (
        sum(len(rows) for rows, _, _ in finished),
        max(row_boxes.m for _, row_boxes, _ in finished),
    )
    boxes, weights = empty_boxes(n, m, finished[0][1].low.shape[2]), np.zeros((n, m))
    for rows, part_boxes, part_weights in finished:
        weights[rows, : part_boxes.m] = part_weights
        for part, values in zip(boxes.parts(), part_boxes.parts(), strict=True):
            part[rows, : part_boxes.m] = values
    return boxes, weights
