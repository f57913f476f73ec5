"""From a table of trees to the boxes of one answer around each record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.utility.engines.asking import placed, told
from curvote.utility.engines.base import Question
from curvote.utility.engines.trees.axes import Axes
from curvote.utility.engines.trees.boxes import Boxes, Ints, Places, boxed, joined
from curvote.utility.engines.trees.reach import Leaves, leaves
from curvote.utility.engines.trees.sums import Units, classes, sums, units
from curvote.utility.engines.trees.table import Table
from curvote.validate import FloatArray

# Paths that begin to go down the trees at once.
AT_ONCE = 4096


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


def counted(table: Table, axes: Axes, features: FloatArray) -> FloatArray:
    """Return how many cells each row of features would have, (n,); none is made."""
    shapes = [each.shape for each in batches(table, axes, features)]
    return np.asarray(np.prod(np.vstack(shapes), axis=1, dtype=np.float64))


def boxes(
    question: Question, table: Table, axes: Axes, features: FloatArray
) -> tuple[Boxes, Ints]:
    """Return all records' boxes, and how often the model was asked for each record."""
    whole, asked = units(table), []
    made: list[Boxes] = []
    for batch in batches(table, axes, features):
        for i in range(len(batch.shape)):
            record = question.records[len(made)]
            classes, near = _classes(table, whole, batch, i)
            ends = batch.ends(i)
            if len(near[0]):
                points = _points(question, axes, record, ends, near)
                classes[near] = _told(question.model, points)
            made.append(boxed(classes, ends))
            asked.append(len(near[0]))
    return joined(made), np.array(asked)


def _classes(
    table: Table, whole: Units, batch: Batch, i: int
) -> tuple[NDArray[Any], tuple[Ints, ...]]:
    """Return the classes of a record's cells, and the places where a tie is near."""
    part = slice(batch.begin[i], batch.begin[i + 1])
    value = whole.value[batch.leaves.node[part]]
    shape = tuple(int(m) for m in batch.shape[i])
    first, last = batch.first[:, part], batch.last[:, part]
    total = sums(first, last, value, whole.start, shape)
    found, near = classes(total, table.rule, whole.slack)
    return found, np.unravel_index(np.flatnonzero(near), shape)


def _points(
    question: Question,
    axes: Axes,
    record: FloatArray,
    ends: list[Places],
    near: tuple[Ints, ...],
) -> FloatArray:
    """Return the record with its sensitive values at the upper ends of cells."""
    points = np.tile(record, (len(near[0]), 1))
    sides = zip(question.sensitive, axes.cuts, ends, near, strict=True)
    for column, cuts, end, at in sides:
        points[:, column] = _upper(cuts, record[column])[end[1:][at] - 1]
    return points


def _upper(cuts: FloatArray, otherwise: float) -> FloatArray:
    """Return a value of each cell of an axis: its upper end; the last has none."""
    if not len(cuts):
        return np.array([otherwise])
    return np.append(cuts, np.nextafter(cuts[-1], np.inf))


def _told(model: Any, points: FloatArray) -> NDArray[np.int64]:
    return placed(np.asarray(model.classes_), told(model, points))
