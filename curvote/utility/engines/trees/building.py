"""From a table of trees to the boxes of one answer around each record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.utility.engines.asking import class_indices, predict_batched
from curvote.utility.engines.base import Question
from curvote.utility.engines.trees.axes import Axes
from curvote.utility.engines.trees.boxes import (
    CellBoxes,
    Ints,
    Places,
    cells_to_boxes,
    join_boxes,
    stack_slabs,
)
from curvote.utility.engines.trees.reach import Leaves, reachable_leaves
from curvote.utility.engines.trees.sums import (
    Units,
    cell_sums,
    whole_units,
)
from curvote.utility.engines.trees.sums import (
    cell_classes as classes,
)
from curvote.utility.engines.trees.table import TreeTable
from curvote.validate import FloatArray

# Paths that begin to go down the trees at once.
BATCH_PATHS = 4096
# Bytes of the sums that are made at once.
SLAB_BYTES = 1 << 22


@dataclass(frozen=True)
class Batch:
    """Leaves of some records in their own cells, between cuts that they reach.

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


def leaf_batches(table: TreeTable, axes: Axes, features: FloatArray) -> Iterator[Batch]:
    """Yield the reachable leaves of all features (n, D), some rows at once."""
    size = max(1, BATCH_PATHS // len(table.roots))
    for begin in range(0, len(features), size):
        yield _make_batch(table, axes, features[begin : begin + size])


def _make_batch(table: TreeTable, axes: Axes, features: FloatArray) -> Batch:
    """Return the batch of some records."""
    n, reachable = (
        len(features),
        reachable_leaves(table, axes, table.compared_values(features)),
    )
    sides = zip(axes.ends, reachable.low, reachable.high, strict=True)
    marks = [_end_marks(n, end, reachable.record, *side) for end, *side in sides]
    numbers = [np.cumsum(mark, axis=1, dtype=np.int32) - 1 for mark in marks]

    def own_cells(side: Ints) -> Ints:
        rows = zip(numbers, side, strict=True)
        return np.array([number[reachable.record, row] for number, row in rows])

    return Batch(
        reachable,
        own_cells(reachable.low),
        own_cells(reachable.high),
        np.column_stack([number[:, -1] for number in numbers]).astype(np.int64),
        np.searchsorted(reachable.record, np.arange(n + 1)),
        marks,
    )


def _end_marks(
    n: int, end: int, record: Ints, low: Ints, high: Ints
) -> NDArray[np.bool_]:
    """Return for each record which ends of cells are an end of its leaves."""
    marks = np.zeros((n, end + 1), dtype=bool)
    marks[record, low] = marks[record, high] = True
    return marks


def count_cells(table: TreeTable, axes: Axes, features: FloatArray) -> Ints:
    """Return the number of cells on each axis of each row, (n, s)."""
    return np.vstack([batch.shape for batch in leaf_batches(table, axes, features)])


@dataclass(frozen=True)
class _BoxBuilder:
    """Builder of the boxes of all records."""

    question: Question
    table: TreeTable
    axes: Axes
    units: Units

    def boxes(self, batch: Batch, i: int, record: FloatArray) -> tuple[CellBoxes, int]:
        """Return a record's boxes, and the number of queries to the model.

        Its cells are made in slabs of the first axis, which fit a processor's cache.
        """
        slabs, query_count = [], 0
        ends, line = batch.ends(i), self.units.start.nbytes * batch.shape[i, 1:].prod()
        thickness = max(1, int(SLAB_BYTES // line))
        for begin in range(0, int(batch.shape[i, 0]), thickness):
            slab = [ends[0][begin : begin + thickness + 1], *ends[1:]]
            classes, near = self._slab_classes(batch, i, begin, len(slab[0]) - 1)
            if len(near[0]):
                classes[near] = self._ask_cells(record, slab, near)
            query_count += len(near[0])
            slabs.append(cells_to_boxes(classes, slab))
        return stack_slabs(slabs), query_count

    def _slab_classes(
        self, batch: Batch, i: int, begin: int, thickness: int
    ) -> tuple[Places, tuple[Ints, ...]]:
        """Return the classes of a slab's cells, and where a tie is near."""
        part = slice(batch.begin[i], batch.begin[i + 1])
        first, last = batch.first[:, part].copy(), batch.last[:, part].copy()
        for side in (first, last):
            side[0] = (side[0] - begin).clip(0, thickness)
        inside = np.flatnonzero(first[0] < last[0])
        value = self.units.value[batch.leaves.node[part][inside]]
        shape = (thickness, *(int(m) for m in batch.shape[i, 1:]))
        first, last = first[:, inside], last[:, inside]
        total = cell_sums(first, last, value, self.units.start, shape)
        cell_classes, near = classes(total, self.table.rule, self.units.slack)
        return cell_classes, np.unravel_index(np.flatnonzero(near), shape)

    def _ask_cells(
        self, record: FloatArray, ends: list[Places], near: tuple[Ints, ...]
    ) -> Ints:
        """Return the model's own classes of cells, at their upper ends."""
        question = self.question
        points = np.tile(record, (len(near[0]), 1))
        sides = zip(question.sensitive, self.axes.cuts, ends, near, strict=True)
        for column, cuts, end, at in sides:
            upper = _cell_values(cuts, record[column])
            points[:, column] = upper[end[1:][at].astype(np.int64) - 1]
        classes = np.asarray(question.model.classes_)
        return class_indices(classes, predict_batched(question.model, points))


def _cell_values(cuts: FloatArray, otherwise: float) -> FloatArray:
    """Return a value of each cell of an axis: its upper end."""
    if not len(cuts):
        return np.array([otherwise])
    return np.append(cuts, np.nextafter(cuts[-1], np.inf))


def build_boxes(
    question: Question, table: TreeTable, axes: Axes, features: FloatArray
) -> tuple[CellBoxes, Ints]:
    """Return all records' boxes, and the number of queries of each record."""
    builder = _BoxBuilder(question, table, axes, whole_units(table))
    built: list[tuple[CellBoxes, int]] = []
    for batch in leaf_batches(table, axes, features):
        for i in range(len(batch.shape)):
            built.append(builder.boxes(batch, i, question.records[len(built)]))
    parts, query_counts = zip(*built, strict=True)
    return join_boxes(parts), np.array(query_counts)
