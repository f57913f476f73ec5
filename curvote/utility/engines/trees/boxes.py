"""Cells of one class as boxes, for many records at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Places = NDArray[np.unsignedinteger]


@dataclass(frozen=True)
class CellBoxes:
    """Boxes of n records that fill the space of s features without overlap.

    ``low`` and ``high`` (s, B) are the first cell of each axis and the one after the
    last, in the cells of `Axes`; ``answer`` (B,) is the class; ``begin`` (n + 1,) says
    where each record's boxes begin.
    """

    low: Places
    high: Places
    answer: Places
    begin: Ints

    def of(self, first: int, last: int) -> CellBoxes:
        """Return the boxes of the records from ``first`` up to ``last``."""
        part = slice(self.begin[first], self.begin[last])
        begin = self.begin[first : last + 1] - self.begin[first]
        return CellBoxes(
            self.low[:, part], self.high[:, part], self.answer[part], begin
        )

    @property
    def record(self) -> Ints:
        """Record of each box, (B,)."""
        return np.repeat(np.arange(len(self.begin) - 1), np.diff(self.begin))


def join_boxes(parts: Iterable[CellBoxes]) -> CellBoxes:
    """Return the boxes of all parts' records, in order."""
    all_parts = list(parts)
    sizes = np.concatenate([np.diff(part.begin) for part in all_parts])
    return CellBoxes(
        np.hstack([part.low for part in all_parts]),
        np.hstack([part.high for part in all_parts]),
        np.concatenate([part.answer for part in all_parts]),
        np.concatenate([[0], np.cumsum(sizes)]),
    )


def stack_slabs(slabs: Sequence[CellBoxes]) -> CellBoxes:
    """Return one record's boxes from its slabs along the first axis."""
    if len(slabs) == 1:
        return slabs[0]
    low, high = (np.hstack([getattr(slab, side) for slab in slabs]) for side in _SIDES)
    return _one_record(
        *_merge_boxes(low, high, np.concatenate([s.answer for s in slabs]), 0)
    )


_SIDES = ("low", "high")


def _one_record(low: Places, high: Places, answer: Places) -> CellBoxes:
    """Return the boxes of one record."""
    return CellBoxes(low, high, answer, np.array([0, len(answer)]))


def cells_to_boxes(classes: Places, ends: list[Places]) -> CellBoxes:
    """Return one record's boxes from the classes of its cells.

    ``ends[j]`` (m_j + 1,) are the ends of its cells on axis j. Lines along the last
    axis that equal the one before are one with it. A box is a run of one class on a
    line, and then one with its equals on the lines beside it.
    """
    for axis in range(classes.ndim - 1):
        changed = _class_changes(classes, axis)
        classes = classes.compress(changed[:-1], axis=axis)
        ends[axis] = ends[axis][changed]
    low, high, answer = _class_runs(classes, ends)
    for axis in reversed(range(classes.ndim - 1)):
        low, high, answer = _merge_boxes(low, high, answer, axis)
    return _one_record(low, high, answer)


def _class_runs(classes: Places, ends: list[Places]) -> tuple[Places, Places, Places]:
    """Return the boxes of the runs of one class along the last axis."""
    *leading, width = classes.shape
    new = np.ones(classes.shape, dtype=bool)
    np.not_equal(classes[..., 1:], classes[..., :-1], out=new[..., 1:])
    at = np.flatnonzero(new)
    line, first = np.divmod(at, width)
    last = np.append(at[1:], classes.size) - line * width
    places = np.unravel_index(line, leading) if leading else ()
    sides = list(zip(ends[:-1], places, strict=True))
    low = [*(end[place] for end, place in sides), ends[-1][first]]
    high = [*(end[place + 1] for end, place in sides), ends[-1][last]]
    return np.array(low), np.array(high), classes.ravel()[at]


def _merge_boxes(
    low: Places, high: Places, answer: Places, axis: int
) -> tuple[Places, Places, Places]:
    """Return the boxes with adjacent equal ones merged along an axis."""
    other_axes = [j for j in range(len(low)) if j != axis]
    across = np.vstack([low[other_axes], high[other_axes], answer])
    order = np.lexsort([low[axis], *across])
    low, high, across = low[:, order], high[:, order], across[:, order]
    adjacent = (across[:, 1:] == across[:, :-1]).all(axis=0)
    new = np.append(True, ~(adjacent & (high[axis, :-1] == low[axis, 1:])))
    last = np.append(new[1:], True)
    return low[:, new], high[:, last], answer[order][new]


def _class_changes(classes: Places, axis: int) -> NDArray[np.bool_]:
    """Return the mask of ends of cells where a class changes, (m + 1,)."""
    lines = np.moveaxis(classes, axis, 0).reshape(classes.shape[axis], -1)
    differs = (lines[1:] != lines[:-1]).any(axis=1)
    return np.concatenate([[True], differs, [True]])
