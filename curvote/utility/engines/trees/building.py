"""From a table of trees to the classes of all cells of all records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.utility.engines.base import Question
from curvote.utility.engines.trees.axes import Axes
from curvote.utility.engines.trees.cells import Cells, packed
from curvote.utility.engines.trees.reach import Leaves, leaves
from curvote.utility.engines.trees.sums import Units, classes, sums, units
from curvote.utility.engines.trees.table import Table
from curvote.validate import FloatArray

# Paths that go down the trees at once.
AT_ONCE = 4096


@dataclass(frozen=True)
class Batch:
    """Some records' leaves, in their own cells: those between cuts that they reach.

    ``first`` and ``last`` (s, L) are the boxes in a record's own cells, ``shape``
    (n, s) their number; ``begin`` (n + 1,) says where a record's leaves begin.
    ``kept[j]`` (n, g) says which of the cuts of axis j the record reaches.
    """

    leaves: Leaves
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    shape: NDArray[np.int64]
    begin: NDArray[np.int64]
    kept: list[NDArray[np.bool_]]


def batches(table: Table, axes: Axes, records: FloatArray) -> Iterator[Batch]:
    """Yield the reachable leaves of the records, some records at once, in order."""
    size = max(1, AT_ONCE // len(table.roots))
    for begin in range(0, len(records), size):
        yield batch(table, axes, records[begin : begin + size])


def batch(table: Table, axes: Axes, records: FloatArray) -> Batch:
    """Return the reachable leaves of records (n, D)."""
    found, n = leaves(table, axes, table.seen(records)), len(records)
    pairs = zip(axes.ends, found.low, found.high, strict=True)
    marks = [_marks(n, end, found.record, *ends) for end, *ends in pairs]
    numbers = [np.cumsum(each, axis=1) - 1 for each in marks]

    def own(of: NDArray[np.int64]) -> NDArray[np.int64]:
        rows = zip(numbers, of, strict=True)
        return np.array([number[found.record, row] for number, row in rows])

    return Batch(
        found,
        own(found.low),
        own(found.high),
        np.column_stack([number[:, -1] for number in numbers]),
        np.searchsorted(found.record, np.arange(n + 1)),
        [each[:, 1:-1] for each in marks],
    )


def _marks(
    n: int,
    end: int,
    record: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Say for each record which ends of cells are an end of one of its boxes."""
    marks = np.zeros((n, end + 1), dtype=bool)
    marks[record, low] = marks[record, high] = True
    return marks


def counted(table: Table, axes: Axes, records: FloatArray) -> NDArray[np.int64]:
    """Return how many cells each axis of each record has, (n, s); none is made."""
    return np.vstack([each.shape for each in batches(table, axes, records)])


def cells(
    question: Question, table: Table, axes: Axes
) -> tuple[Cells, NDArray[np.int64]]:
    """Return all records' cells, and how often the model was asked for each record."""
    n_classes = len(question.model.classes_)
    whole, asked, shapes, lines = units(table), [], [], []
    cuts: list[list[FloatArray]] = [[] for _ in axes.cuts]
    begin = 0
    for each in batches(table, axes, question.records):
        for j, kept in enumerate(each.kept):
            cuts[j].append(np.tile(axes.cuts[j], (len(kept), 1))[kept])
        shapes.append(each.shape)
        records = question.records[begin : begin + len(each.shape)]
        found, queries = _classes(question, records, table, axes, whole, each)
        lines += [packed(one, n_classes) for one in found]
        asked.append(queries)
        begin += len(records)
    joined = [np.concatenate(each) for each in cuts]
    made = Cells(np.vstack(shapes), joined, np.concatenate(lines), n_classes)
    return made, np.concatenate(asked)


def _classes(
    question: Question,
    records: FloatArray,
    table: Table,
    axes: Axes,
    whole: Units,
    given: Batch,
) -> tuple[list[NDArray[np.intp]], NDArray[np.int64]]:
    """Return the classes of each record's cells; where a tie is near, the model's."""
    made, points, places = [], [], []
    for i in range(len(records)):
        part = slice(given.begin[i], given.begin[i + 1])
        value = whole.value[given.leaves.node[part]]
        shape = tuple(given.shape[i])
        total = sums(
            given.first[:, part], given.last[:, part], value, whole.start, shape
        )
        one, near = classes(total, table.rule, whole.slack)
        where = np.nonzero(near)
        made.append(one)
        places.append(where)
        points.append(_points(question, records[i], axes, given, i, where))
    asked = np.array([len(each) for each in points])
    if asked.sum():
        _resolve(question, made, places, np.vstack(points))
    return made, asked


def _points(
    question: Question,
    record: FloatArray,
    axes: Axes,
    given: Batch,
    i: int,
    where: tuple[NDArray[np.intp], ...],
) -> FloatArray:
    """Return the record with its sensitive values in those cells: at their upper end."""
    points = np.tile(record, (len(where[0]), 1))
    for j, (column, at) in enumerate(zip(question.sensitive, where, strict=True)):
        cuts = axes.cuts[j][given.kept[j][i]]
        last = np.nextafter(cuts[-1:], np.inf) if len(cuts) else record[[column]]
        points[:, column] = np.concatenate([cuts, last])[at]
    return points


def _resolve(
    question: Question,
    made: list[NDArray[np.intp]],
    places: list[tuple[NDArray[np.intp], ...]],
    points: FloatArray,
) -> None:
    """Write the model's own answers at the points into the cells that they stand for."""
    named = question.model.predict(points)
    answers = np.searchsorted(question.model.classes_, named)
    begin = 0
    for one, where in zip(made, places, strict=True):
        one[where] = answers[begin : begin + len(where[0])]
        begin += len(where[0])
