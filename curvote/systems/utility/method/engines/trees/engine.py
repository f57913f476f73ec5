"""From a table of trees to the boxes of one answer around each record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.validate import FloatArray
from curvote.systems.utility.method.engines import base
from curvote.systems.utility.method.engines.base import Channel
from curvote.systems.utility.method.engines.black_box import draw_answers
from curvote.systems.utility.method.engines.trees import cells

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


def join_boxes(parts: Sequence[CellBoxes]) -> CellBoxes:
    """Return the boxes of all parts' records, in order."""
    low, high, answer = (
        np.concatenate([getattr(part, name) for part in parts], axis=-1)
        for name in ("low", "high", "answer")
    )
    sizes = np.concatenate([np.diff(part.begin) for part in parts])
    return CellBoxes(low, high, answer, np.concatenate([[0], np.cumsum(sizes)]))


def cells_to_boxes(classes: Places, ends: list[Places]) -> CellBoxes:
    """Return one record's boxes from the classes of its cells.

    ``ends[j]`` (m_j + 1,) are the ends of its cells on axis j. Lines along the last
    axis that equal the one before are one with it. A box is a run of one class on a
    line, and then one with its equals on the lines beside it.
    """
    for axis in range(classes.ndim - 1):
        lines = np.moveaxis(classes, axis, 0).reshape(classes.shape[axis], -1)
        differs = (lines[1:] != lines[:-1]).any(axis=1)
        changed = np.concatenate([[True], differs, [True]])
        classes = classes.compress(changed[:-1], axis=axis)
        ends[axis] = ends[axis][changed]
    # The boxes of the runs of one class along the last axis.
    *leading, width = classes.shape
    new = np.ones(classes.shape, dtype=bool)
    np.not_equal(classes[..., 1:], classes[..., :-1], out=new[..., 1:])
    at = np.flatnonzero(new)
    line, first = np.divmod(at, width)
    last = np.append(at[1:], classes.size) - line * width
    places = np.unravel_index(line, leading) if leading else ()
    sides = list(zip(ends[:-1], places, strict=True))
    low = np.array([*(end[place] for end, place in sides), ends[-1][first]])
    high = np.array([*(end[place + 1] for end, place in sides), ends[-1][last]])
    answer = classes.ravel()[at]
    for axis in reversed(range(classes.ndim - 1)):
        low, high, answer = _merge_boxes(low, high, answer, axis)
    return CellBoxes(low, high, answer, np.array([0, len(answer)]))


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


# Probabilities of records at cuts, and boxes, that are held at once.
CHUNK_NUMBERS = 1 << 22


@dataclass(frozen=True)
class TreeSurface(base.Surface):
    """Surface of trees: boxes of one answer, between ``cuts`` of s features.

    ``query_counts`` (n,) counts the model's answers that it took to know them.
    """

    question: base.Question
    cuts: list[FloatArray]
    boxes: CellBoxes
    query_counts: Ints

    def answers(self, channel: Channel, draws: base.Draws) -> base.Answers:
        """Return exact shares; drawn ones where a mechanism states no law."""
        pieces = list(self._chunk_shares(channel))
        if not pieces:
            return draw_answers(self, self.question, channel, draws)
        share = np.vstack(pieces)
        return base.Answers(share, share, share, "exact", self.query_counts)

    def _chunk_shares(self, channel: Channel) -> Iterator[FloatArray]:
        for first, last in self._record_chunks():
            law = channel.law(self.question.values[first:last])
            if law is None:
                return
            boxes = self.boxes.of(first, last)
            record, n = boxes.record, len(law.weights)
            masses: dict[tuple[int, int], FloatArray] = {}
            share = np.zeros(len(record))
            for weight, term in zip(law.weights.T, law.terms, strict=True):
                mass = weight[record]
                for axis, law_of_axis in enumerate(term):
                    key = axis, id(law_of_axis)
                    if key not in masses:
                        cuts = self.cuts[axis]
                        upto = np.zeros((law_of_axis.n, len(cuts) + 2))
                        upto[:, -1] = 1.0
                        upto[:, 1:-1] = law_of_axis.cdf(cuts)
                        row = record * upto.shape[1]
                        flat = upto.ravel()
                        masses[key] = np.asarray(
                            flat[row + boxes.high[axis]] - flat[row + boxes.low[axis]]
                        )
                    mass = mass * masses[key]
                share += mass
            cell = record * self.n_classes + boxes.answer
            sums = np.bincount(cell, weights=share, minlength=n * self.n_classes)
            yield np.clip(sums.reshape(n, self.n_classes), 0.0, 1.0)

    def _record_chunks(self) -> Iterator[tuple[int, int]]:
        """Yield the first record and the one after the last of each chunk."""
        size = max(1, CHUNK_NUMBERS // max(len(cuts) + 2 for cuts in self.cuts))
        begin, first = self.boxes.begin, 0
        while first < len(self.clean):
            most = begin[first] + CHUNK_NUMBERS
            few = int(np.searchsorted(begin, most, side="right")) - 1
            last = min(max(few, first + 1), first + size, len(self.clean))
            yield first, last
            first = last

    def holds(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Return whether each record's answer is the clean one in a closed box."""
        wrong, record = self._wrong_boxes
        meets = np.ones(len(record), dtype=bool)
        for axis, cuts in enumerate(self.cuts):
            first, last = (np.searchsorted(cuts, end[:, axis]) for end in (low, high))
            meets &= wrong.low[axis] <= last[record]
            meets &= wrong.high[axis] > first[record]
        hit = np.bincount(record[meets], minlength=len(self.clean))
        return np.asarray(hit == 0)

    @cached_property
    def _wrong_boxes(self) -> tuple[CellBoxes, Ints]:
        """Boxes of another answer than the clean one, and their records."""
        boxes, record = self.boxes, self.boxes.record
        other = boxes.answer != self.clean[record]
        part = boxes.low[:, other], boxes.high[:, other], boxes.answer[other]
        return CellBoxes(*part, boxes.begin), record[other]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the boxes, and the cuts of each axis."""
        cuts = {f"cuts_{axis}": axis_cuts for axis, axis_cuts in enumerate(self.cuts)}
        whole_arrays = {"clean": self.clean, "asked": self.query_counts}
        return {**whole_arrays, **vars(self.boxes), **cuts}


def prune_cuts(
    cuts: Sequence[FloatArray], boxes: CellBoxes
) -> tuple[list[FloatArray], CellBoxes]:
    """Return the cuts at which some box ends, and the boxes between those."""
    used_cuts, sides = [], []
    for axis, axis_cuts in enumerate(cuts):
        used = np.zeros(len(axis_cuts) + 2, dtype=bool)
        used[boxes.low[axis]] = used[boxes.high[axis]] = True
        used_cuts.append(axis_cuts[used[1:-1]])
        number = (np.cumsum(used) - 1).astype(boxes.low.dtype)
        sides.append((number[boxes.low[axis]], number[boxes.high[axis]]))
    low, high = (np.array(side) for side in zip(*sides, strict=True))
    return used_cuts, CellBoxes(low, high, boxes.answer, boxes.begin)


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

    leaves: cells.Leaves
    first: Ints
    last: Ints
    shape: Ints
    begin: Ints
    marks: list[NDArray[np.bool_]]


def leaf_batches(
    table: cells.TreeTable, axes: cells.Axes, features: FloatArray
) -> Iterator[Batch]:
    """Yield the reachable leaves of all features (n, D), some rows at once."""
    size = max(1, BATCH_PATHS // len(table.roots))
    for begin in range(0, len(features), size):
        some = features[begin : begin + size]
        leaves = cells.reachable_leaves(table, axes, table.compared_values(some))
        marks = [np.zeros((len(some), end + 1), dtype=bool) for end in axes.ends]
        for mark, low, high in zip(marks, leaves.low, leaves.high, strict=True):
            mark[leaves.record, low] = mark[leaves.record, high] = True
        numbers = [np.cumsum(mark, axis=1, dtype=np.int32) - 1 for mark in marks]
        first, last = (
            np.array([numbers[j][leaves.record, row] for j, row in enumerate(side)])
            for side in (leaves.low, leaves.high)
        )
        shape = np.column_stack([number[:, -1] for number in numbers])
        starts = np.searchsorted(leaves.record, np.arange(len(some) + 1))
        yield Batch(leaves, first, last, shape.astype(np.int64), starts, marks)


def count_cells(table: cells.TreeTable, axes: cells.Axes, features: FloatArray) -> Ints:
    """Return the number of cells on each axis of each row, (n, s)."""
    return np.vstack([batch.shape for batch in leaf_batches(table, axes, features)])


@dataclass(frozen=True)
class _BoxBuilder:
    """Builder of the boxes of all records."""

    question: base.Question
    table: cells.TreeTable
    axes: cells.Axes
    units: cells.Units

    def boxes(self, batch: Batch, i: int, record: FloatArray) -> tuple[CellBoxes, int]:
        """Return a record's boxes, and the number of queries to the model.

        Its cells are made in slabs of the first axis, which fit a processor's cache.
        """
        slabs, query_count, units = [], 0, self.units
        # The ends of the record's own cells on each axis, in few bytes.
        kind = np.min_scalar_type(max(marks.shape[1] for marks in batch.marks))
        ends = [np.flatnonzero(marks[i]).astype(kind) for marks in batch.marks]
        span = slice(batch.begin[i], batch.begin[i + 1])
        line = units.start.nbytes * batch.shape[i, 1:].prod()
        thickness = max(1, int(SLAB_BYTES // line))
        for begin in range(0, int(batch.shape[i, 0]), thickness):
            slab = [ends[0][begin : begin + thickness + 1], *ends[1:]]
            first, last = batch.first[:, span].copy(), batch.last[:, span].copy()
            for side in (first, last):
                side[0] = (side[0] - begin).clip(0, len(slab[0]) - 1)
            inside = np.flatnonzero(first[0] < last[0])
            value = units.value[batch.leaves.node[span][inside]]
            shape = tuple(len(end) - 1 for end in slab)
            total = cells.cell_sums(
                first[:, inside], last[:, inside], value, units.start, shape
            )
            classes, tie = cells.cell_classes(total, self.table.rule, units.slack)
            near = np.nonzero(tie)
            if len(near[0]):  # the model's own classes, at the cells' upper ends
                points = np.tile(record, (len(near[0]), 1))
                sensitive = self.question.sensitive
                sides = zip(sensitive, self.axes.cuts, slab, near, strict=True)
                for column, cuts, end, at in sides:
                    upper = np.array([record[column]])
                    if len(cuts):
                        upper = np.append(cuts, np.nextafter(cuts[-1], np.inf))
                    points[:, column] = upper[end[1:][at].astype(np.int64) - 1]
                classes[near] = base.predict_indices(self.question.model, points)
            query_count += len(near[0])
            slabs.append(cells_to_boxes(classes, slab))
        if len(slabs) == 1:
            return slabs[0], query_count
        joined = join_boxes(slabs)
        merged = _merge_boxes(joined.low, joined.high, joined.answer, 0)
        begin_of_record = np.array([0, len(merged[2])])
        return CellBoxes(*merged, begin_of_record), query_count


# Cells of all records, some minutes; and bytes of the sums that are held at once, those
# of the cells beside one cell of the first axis.
MOST_CELLS = 1 << 34
MOST_BYTES = 1 << 27


class Trees(base.Engine):
    """Engine of decision trees, forests and boosted trees of scikit-learn."""

    name = "trees"

    def refusal(self, question: base.Question) -> str | None:
        """Return why the cells cannot be made, or None."""
        trees_found = read_trees(question)
        if isinstance(trees_found, str):
            return trees_found
        front, trees, cuts = trees_found
        # Counted only where as many as there are cuts of all trees would not fit.
        n = len(question.records)
        line = MOST_BYTES // cells.whole_units(trees).start.nbytes
        if _cells_fit(np.tile(cuts.ends, (n, 1)), line):
            return None
        shape = count_cells(trees, cuts, front.features(question.records))
        if _cells_fit(shape, line):
            return None
        count = np.prod(shape, axis=1, dtype=np.float64)
        return (
            f"The trees cut the sensitive features into {count.sum():.3g} cells around"
            f" {n} records, {count.max():.3g} around one; at most {MOST_CELLS:.3g} are"
            f" made, and {line:.3g} at once. Branch and bound or draws take their"
            " place."
        )

    def surface(self, question: base.Question) -> base.Surface:
        """Return the boxes of one answer around each record; UserError if refused."""
        front, trees, cuts = base.require(read_trees(question))
        features = front.features(question.records)
        builder = _BoxBuilder(question, trees, cuts, cells.whole_units(trees))
        built: list[tuple[CellBoxes, int]] = []
        for batch in leaf_batches(trees, cuts, features):
            for i in range(len(batch.shape)):
                built.append(builder.boxes(batch, i, question.records[len(built)]))
        parts, counts = zip(*built, strict=True)
        clean = base.predict_indices(question.model, question.records)
        used_cuts, boxes = prune_cuts(cuts.cuts, join_boxes(parts))
        k = len(question.model.classes_)
        return TreeSurface(clean, k, question, used_cuts, boxes, np.array(counts))

    def restored(
        self, question: base.Question, arrays: dict[str, NDArray[Any]]
    ) -> base.Surface:
        """Return the surface built again from its ``arrays``."""
        cuts = [arrays[f"cuts_{axis}"] for axis in range(len(question.sensitive))]
        boxes = CellBoxes(*(arrays[name] for name in CellBoxes.__dataclass_fields__))
        k = len(question.model.classes_)
        return TreeSurface(arrays["clean"], k, question, cuts, boxes, arrays["asked"])


def cell_counts(question: base.Question) -> FloatArray:
    """Return the number of cells of each record of trees, (n,).

    UserError where the model cannot be read as trees.
    """
    front, trees, cuts = base.require(read_trees(question))
    shape = count_cells(trees, cuts, front.features(question.records))
    return np.asarray(np.prod(shape, axis=1, dtype=np.float64))


def read_trees(
    question: base.Question,
) -> tuple[base.Front, cells.TreeTable, cells.Axes] | str:
    """Return front, table of trees and their cuts, or why they cannot be read."""
    estimator, front = base.split_front(question)
    trees = cells.read_table(estimator)
    if isinstance(trees, str):
        return trees
    if isinstance(front, str):
        return front
    why = cells.why_not_axes(front, trees)
    return why or (front, trees, cells.make_axes(question, front, trees))


def _cells_fit(shape: NDArray[np.int64], line: float) -> bool:
    sides = shape.astype(np.float64)
    return bool(
        sides.prod(axis=1).sum() <= MOST_CELLS
        and sides[:, 1:].prod(axis=1).max() <= line
    )
