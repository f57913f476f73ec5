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

from curvote.utility.engines.boxes import Boxes, Weigh, halves, middles
from curvote.validate import FloatArray

# Boxes for which an oracle is asked at once: more would not stay near the processor.
AT_ONCE = 1 << 12
# The part of all boxes that is split in one pass.
PASS = 0.5
FEWEST = 32


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
    """Return the boxes with the oracle's verdict on those marked in ``which`` (n, m)."""
    rows, columns = np.nonzero(which)
    parts = [boxes.answer.copy(), boxes.certain.copy(), boxes.axis.copy()]
    for start in range(0, len(rows), AT_ONCE):
        at = rows[start : start + AT_ONCE], columns[start : start + AT_ONCE]
        low, high = boxes.low[at], boxes.high[at]
        verdict = oracle.judged(who[at[0]], low, high)
        axis = _axis(verdict.effect, low, high)
        for part, new in zip(
            parts, (verdict.answer, verdict.certain, axis), strict=True
        ):
            part[at] = new
    answer, certain, axis = parts
    return replace(boxes, answer=answer, certain=certain, axis=axis)


def _axis(effect: FloatArray, low: FloatArray, high: FloatArray) -> NDArray[np.int64]:
    """Return the coordinate with the largest effect that has any width, else -1."""
    known = np.where(np.isnan(effect), np.inf, effect)
    wide = np.where(high > low, known, -1.0)
    return np.where((wide >= 0).any(axis=1), wide.argmax(axis=1), -1)


def refined(
    oracle: Oracle,
    who: NDArray[np.intp],
    boxes: Boxes,
    weigh: Weigh,
    settled: Callable[[Boxes, FloatArray], NDArray[np.bool_]],
    most: int,
) -> Boxes:
    """Return the boxes of records ``who`` (n,), split until each is ``settled``.

    At most ``most`` boxes of each record, and not more than twice of them all. The
    heaviest open boxes come first.
    """
    weights = weigh(boxes.low, boxes.high)
    while boxes.m < most:
        waiting = weights * (~boxes.certain & (boxes.axis >= 0))
        waiting[settled(boxes, weights)] = 0.0
        if not waiting.any():
            break
        columns = _heaviest(waiting, min(most - boxes.m, _pass(boxes.m)))
        boxes, weights = _split(oracle, who, boxes, weights, waiting, columns, weigh)
    return boxes


def _pass(m: int) -> int:
    return max(FEWEST, int(PASS * m))


def _heaviest(waiting: FloatArray, most: int) -> NDArray[np.intp]:
    """Return the columns (n, k) of each row's heaviest boxes, k at most ``most``."""
    k = min(most, int((waiting > 0).sum(axis=1).max()))
    return np.argpartition(-waiting, k - 1, axis=1)[:, :k]


def _split(
    oracle: Oracle,
    who: NDArray[np.intp],
    boxes: Boxes,
    weights: FloatArray,
    waiting: FloatArray,
    columns: NDArray[np.intp],
    weigh: Weigh,
) -> tuple[Boxes, FloatArray]:
    """Return the boxes and their weights, those of the columns split in two."""
    real = np.take_along_axis(waiting, columns, axis=1) > 0
    parts = [
        judged(oracle, who, part, real)
        for part in _children(oracle, boxes.taken(columns), real)
    ]
    lighter = [weigh(part.low, part.high) for part in parts]
    joined = np.concatenate([weights, lighter[1]], axis=1)
    np.put_along_axis(joined, columns, lighter[0], axis=1)
    return boxes.replaced(columns, *parts), joined


def _children(
    oracle: Oracle, boxes: Boxes, real: NDArray[np.bool_]
) -> tuple[Boxes, Boxes]:
    axis = boxes.axis[real]
    rows = np.arange(len(axis))
    cut = np.zeros(real.shape)
    cut[real] = oracle.cut(
        axis, boxes.low[real][rows, axis], boxes.high[real][rows, axis]
    )
    return halves(boxes, real, cut)
