"""Cells of one class as boxes, for many records at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.validate import FloatArray
from curvote.systems.utility.method.channel import Channel
from curvote.systems.utility.method.engines.base import (
    Answers,
    Draws,
    Question,
    Surface,
)
from curvote.systems.utility.method.engines.black_box import BlackBoxSurface

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
        lines = np.moveaxis(classes, axis, 0).reshape(classes.shape[axis], -1)
        differs = (lines[1:] != lines[:-1]).any(axis=1)
        changed = np.concatenate([[True], differs, [True]])
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


# Probabilities of records at cuts, and boxes, that are held at once.
CHUNK_NUMBERS = 1 << 22


@dataclass(frozen=True)
class TreeSurface(Surface):
    """Surface of trees: boxes of one answer, between ``cuts`` of s features.

    ``query_counts`` (n,) counts the model's answers that it took to know them.
    """

    question: Question
    cuts: list[FloatArray]
    boxes: CellBoxes
    query_counts: Ints

    def answers(self, channel: Channel, draws: Draws) -> Answers:
        """Return exact shares; drawn ones where a mechanism states no law."""
        pieces = list(self._chunk_shares(channel))
        if not pieces:
            classes = np.asarray(self.question.model.classes_)
            black_box = BlackBoxSurface(
                self.clean, self.n_classes, self.question, classes
            )
            return black_box.answers(channel, draws)
        share = np.vstack(pieces)
        return Answers(share, share, share, "exact", self.query_counts)

    def _chunk_shares(self, channel: Channel) -> Iterator[FloatArray]:
        """Yield the shares of each chunk of records."""
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
            few = (
                int(np.searchsorted(begin, begin[first] + CHUNK_NUMBERS, side="right"))
                - 1
            )
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
        boxes = {name: getattr(self.boxes, name) for name in _BOX_FIELDS}
        return {"clean": self.clean, "asked": self.query_counts, **boxes, **cuts}


_BOX_FIELDS = ("low", "high", "answer", "begin")


def restore_trees(question: Question, arrays: dict[str, NDArray[Any]]) -> TreeSurface:
    """Return the surface built again from its ``arrays``."""
    cuts = [arrays[f"cuts_{axis}"] for axis in range(len(question.sensitive))]
    boxes = CellBoxes(*(arrays[name] for name in _BOX_FIELDS))
    k = len(question.model.classes_)
    return TreeSurface(arrays["clean"], k, question, cuts, boxes, arrays["asked"])


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
