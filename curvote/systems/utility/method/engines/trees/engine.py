"""From a table of trees to the boxes of one answer around each record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.systems.utility.method.engines.base import (
    Engine,
    Question,
    Surface,
    class_indices,
    predict_batched,
)
from curvote.systems.utility.method.engines.fronts import Front, split_front
from curvote.systems.utility.method.engines.trees import surface
from curvote.systems.utility.method.engines.trees.cells import (
    Axes,
    Leaves,
    Units,
    cell_sums,
    make_axes,
    reachable_leaves,
    whole_units,
    why_not_axes,
)
from curvote.systems.utility.method.engines.trees.cells import cell_classes as classes
from curvote.systems.utility.method.engines.trees.surface import (
    CellBoxes,
    Ints,
    Places,
    cells_to_boxes,
    join_boxes,
    stack_slabs,
)
from curvote.systems.utility.method.engines.trees.table import TreeTable, read_table

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


# Cells of all records, some minutes; and bytes of the sums that are held at once, those
# of the cells beside one cell of the first axis.
MOST_CELLS = 1 << 34
MOST_BYTES = 1 << 27


class Trees(Engine):
    """Engine of decision trees, forests and boosted trees of scikit-learn."""

    name = "trees"

    def refusal(self, question: Question) -> str | None:
        """Return why the cells cannot be made, or None."""
        trees = read_trees(question)
        return trees if isinstance(trees, str) else _too_many_cells(question, *trees)

    def surface(self, question: Question) -> Surface:
        """Return the boxes of one answer around each record; UserError if refused."""
        trees_found = read_trees(question)
        if isinstance(trees_found, str):
            raise UserError(trees_found)
        front, trees, cuts = trees_found
        features = front.features(question.records)
        boxes, query_counts = build_boxes(question, trees, cuts, features)
        classes = np.asarray(question.model.classes_)
        clean = class_indices(
            classes, predict_batched(question.model, question.records)
        )
        used_cuts, boxes = surface.prune_cuts(cuts.cuts, boxes)
        return surface.TreeSurface(
            clean, len(classes), question, used_cuts, boxes, query_counts
        )

    def restored(self, question: Question, arrays: dict[str, NDArray[Any]]) -> Surface:
        """Return the surface built again from its ``arrays``."""
        return surface.restore_trees(question, arrays)


def cell_counts(question: Question) -> FloatArray:
    """Return the number of cells of each record of trees, (n,).

    UserError where the model cannot be read as trees.
    """
    trees_found = read_trees(question)
    if isinstance(trees_found, str):
        raise UserError(trees_found)
    front, trees, cuts = trees_found
    shape = count_cells(trees, cuts, front.features(question.records))
    return np.asarray(np.prod(shape, axis=1, dtype=np.float64))


def read_trees(question: Question) -> tuple[Front, TreeTable, Axes] | str:
    """Return front, table of trees and their cuts, or why they cannot be read."""
    estimator, front = split_front(question)
    trees = read_table(estimator)
    if isinstance(trees, str):
        return trees
    if isinstance(front, str):
        return front
    why = why_not_axes(question, front, trees)
    return (front, trees, make_axes(question, front, trees)) if why is None else why


def _too_many_cells(
    question: Question, front: Front, trees: TreeTable, cuts: Axes
) -> str | None:
    """Return why the cells would not fit, or None.

    They are counted only where as many as there are cuts of all trees would not fit.
    """
    n, line = len(question.records), MOST_BYTES // whole_units(trees).start.nbytes
    if _cells_fit(np.tile(cuts.ends, (n, 1)), line):
        return None
    shape = count_cells(trees, cuts, front.features(question.records))
    if _cells_fit(shape, line):
        return None
    count = np.prod(shape, axis=1, dtype=np.float64)
    return (
        f"The trees cut the sensitive features into {count.sum():.3g} cells around"
        f" {n} records, {count.max():.3g} around one; at most {MOST_CELLS:.3g} are"
        " made, and"
        f" {line:.3g} at once. Branch and bound or draws take their place."
    )


def _cells_fit(shape: NDArray[np.int64], line: float) -> bool:
    """Return whether cells of this shape fit."""
    sides = shape.astype(np.float64)
    return bool(
        sides.prod(axis=1).sum() <= MOST_CELLS
        and sides[:, 1:].prod(axis=1).max() <= line
    )
