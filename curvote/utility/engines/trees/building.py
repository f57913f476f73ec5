"""From a table of trees to the boxes of one answer around each record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.utility.engines.asking import placed, told
from curvote.utility.engines.base import Question
from curvote.utility.engines.trees.axes import Axes
from curvote.utility.engines.trees.boxes import (
    Boxes,
    Ints,
    Places,
    boxed,
    joined,
    stacked,
)
from curvote.utility.engines.trees.reach import Leaves, leaves
from curvote.utility.engines.trees.sums import Units, classes, sums, units
from curvote.utility.engines.trees.table import Table
from curvote.validate import FloatArray

# Paths that begin to go down the trees at once.
AT_ONCE = 4096
# Bytes of the sums that are made at once.
SLAB = 1 << 22


@dataclass(frozen=True)
class Batch:
    """Some records' leaves, in their own cells: those between cuts that they reach.

    ``first`` and ``last`` (s, L) are the boxes in a record's own cells, ``shape``
    (n, s) their number; ``begin`` (n + 1,) says where a record's leaves begin.
    ``marks[j]`` (n, g + 2) says which ends of the cells of axis j are ends of its own.
    """

    leaves: Leaves
    first: Ints
    last: Ints
    shape: Ints
    begin: Ints
    marks: list[NDArray[np.bool_]]

    def ends(self, i: int) -> list[Places]:
        """Return the ends of a record's own cells on each axis, in few bytes."""
        kind = np.min_scalar_type(max(marks.shape[1] for marks in self.marks))
        return [np.flatnonzero(marks[i]).astype(kind) for marks in self.marks]


def batches(table: Table, axes: Axes, features: FloatArray) -> Iterator[Batch]:
    """Yield the reachable leaves of all features (n, D), some rows at once."""
    size = max(1, AT_ONCE // len(table.roots))
    for begin in range(0, len(features), size):
        yield _batch(table, axes, features[begin : begin + size])


def _batch(table: Table, axes: Axes, features: FloatArray) -> Batch:
    n, found = len(features), leaves(table, axes, table.seen(features))
    sides = zip(axes.ends, found.low, found.high, strict=True)
    marks = [_marks(n, end, found.record, *side) for end, *side in sides]
    numbers = [np.cumsum(each, axis=1, dtype=np.int32) - 1 for each in marks]

    def own(side: Ints) -> Ints:
        rows = zip(numbers, side, strict=True)
        return np.array([number[found.record, row] for number, row in rows])

    return Batch(
        found,
        own(found.low),
        own(found.high),
        np.column_stack([number[:, -1] for number in numbers]).astype(np.int64),
        np.searchsorted(found.record, np.arange(n + 1)),
        marks,
    )


def _marks(n: int, end: int, record: Ints, low: Ints, high: Ints) -> NDArray[np.bool_]:
    """Say for each record which ends of cells are an end of one of its leaves."""
    marks = np.zeros((n, end + 1), dtype=bool)
    marks[record, low] = marks[record, high] = True
    return marks


def counted(table: Table, axes: Axes, features: FloatArray) -> Ints:
    """Return how many cells each axis of each row would have, (n, s); none is made."""
    return np.vstack([each.shape for each in batches(table, axes, features)])


@dataclass(frozen=True)
class _Making:
    """What the cells of all records are made of."""

    question: Question
    table: Table
    axes: Axes
    units: Units

    def boxes(self, batch: Batch, i: int, record: FloatArray) -> tuple[Boxes, int]:
        """Return a record's boxes, and how often the model was asked for them.

        Its cells are made in slabs of the first axis, which fit a processor's cache.
        """
        found, asked = [], 0
        ends, line = batch.ends(i), self.units.start.nbytes * batch.shape[i, 1:].prod()
        thickness = max(1, int(SLAB // line))
        for begin in range(0, int(batch.shape[i, 0]), thickness):
            slab = [ends[0][begin : begin + thickness + 1], *ends[1:]]
            classes, near = self._classes(batch, i, begin, len(slab[0]) - 1)
            if len(near[0]):
                classes[near] = self._told(record, slab, near)
            asked += len(near[0])
            found.append(boxed(classes, slab))
        return stacked(found), asked

    def _classes(
        self, batch: Batch, i: int, begin: int, thickness: int
    ) -> tuple[Places, tuple[Ints, ...]]:
        """Return the classes of a slab's cells, and the places where a tie is near."""
        part = slice(batch.begin[i], batch.begin[i + 1])
        first, last = batch.first[:, part].copy(), batch.last[:, part].copy()
        for side in (first, last):
            side[0] = (side[0] - begin).clip(0, thickness)
        inside = np.flatnonzero(first[0] < last[0])
        value = self.units.value[batch.leaves.node[part][inside]]
        shape = (thickness, *(int(m) for m in batch.shape[i, 1:]))
        first, last = first[:, inside], last[:, inside]
        total = sums(first, last, value, self.units.start, shape)
        found, near = classes(total, self.table.rule, self.units.slack)
        return found, np.unravel_index(np.flatnonzero(near), shape)

    def _told(
        self, record: FloatArray, ends: list[Places], near: tuple[Ints, ...]
    ) -> Ints:
        """Return the model's own classes of cells: at their upper ends."""
        question = self.question
        points = np.tile(record, (len(near[0]), 1))
        sides = zip(question.sensitive, self.axes.cuts, ends, near, strict=True)
        for column, cuts, end, at in sides:
            upper = _upper(cuts, record[column])
            points[:, column] = upper[end[1:][at].astype(np.int64) - 1]
        classes = np.asarray(question.model.classes_)
        return placed(classes, told(question.model, points))


def _upper(cuts: FloatArray, otherwise: float) -> FloatArray:
    """Return a value of each cell of an axis: its upper end; the last has none."""
    if not len(cuts):
        return np.array([otherwise])
    return np.append(cuts, np.nextafter(cuts[-1], np.inf))


def boxes(
    question: Question, table: Table, axes: Axes, features: FloatArray
) -> tuple[Boxes, Ints]:
    """Return all records' boxes, and how often the model was asked for each record."""
    making = _Making(question, table, axes, units(table))
    made: list[tuple[Boxes, int]] = []
    for batch in batches(table, axes, features):
        for i in range(len(batch.shape)):
            made.append(making.boxes(batch, i, question.records[len(made)]))
    found, asked = zip(*made, strict=True)
    return joined(found), np.array(asked)
