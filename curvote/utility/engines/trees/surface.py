"""Surface of trees: shares as sums over boxes of cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.mechanisms.law import Law, Mixture
from curvote.utility.channel import Channel
from curvote.utility.engines.base import Answers, Draws, Question, Surface
from curvote.utility.engines.black_box import BlackBoxSurface
from curvote.utility.engines.trees.boxes import CellBoxes, Ints
from curvote.validate import FloatArray

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
            yield self._mixture_shares(law, self.boxes.of(first, last))

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

    def _mixture_shares(self, law: Mixture, boxes: CellBoxes) -> FloatArray:
        """Return the shares (n, K) of some records under their laws."""
        record, n = boxes.record, len(law.weights)
        masses: dict[tuple[int, int], FloatArray] = {}
        share = np.zeros(len(record))
        for weight, term in zip(law.weights.T, law.terms, strict=True):
            mass = weight[record]
            for axis, law_of_axis in enumerate(term):
                key = axis, id(law_of_axis)
                if key not in masses:
                    masses[key] = self._box_masses(law_of_axis, axis, boxes, record)
                mass = mass * masses[key]
            share += mass
        cell = record * self.n_classes + boxes.answer
        sums = np.bincount(cell, weights=share, minlength=n * self.n_classes)
        return np.clip(sums.reshape(n, self.n_classes), 0.0, 1.0)

    def _box_masses(
        self, law: Law, axis: int, boxes: CellBoxes, record: Ints
    ) -> FloatArray:
        """Return P(output on an axis lies in each box), (B,)."""
        cuts = self.cuts[axis]
        upto = np.zeros((law.n, len(cuts) + 2))
        upto[:, -1] = 1.0
        upto[:, 1:-1] = law.cdf(cuts)
        row = record * upto.shape[1]
        flat = upto.ravel()
        return np.asarray(flat[row + boxes.high[axis]] - flat[row + boxes.low[axis]])

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
