"""The surface of trees: shares as sums over boxes, and questions about a box."""

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
from curvote.utility.engines.black_box import Drawn
from curvote.utility.engines.trees.boxes import Boxes, Ints
from curvote.validate import FloatArray

# Probabilities of records at cuts, and boxes, that are held at once.
AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Cells(Surface):
    """The boxes of one answer around n records, between ``cuts`` of s features.

    ``asked`` (n,) counts the model's answers that it took to know them.
    """

    question: Question
    cuts: list[FloatArray]
    boxes: Boxes
    asked: Ints

    def answers(self, channel: Channel, draws: Draws) -> Answers:
        """Return exact shares; drawn ones where a mechanism states no law."""
        pieces = list(self._shares(channel))
        if not pieces:
            classes = np.asarray(self.question.model.classes_)
            drawn = Drawn(self.clean, self.n_classes, self.question, classes)
            return drawn.answers(channel, draws)
        share = np.vstack(pieces)
        return Answers(share, share, share, "exact", self.asked)

    def _shares(self, channel: Channel) -> Iterator[FloatArray]:
        for first, last in self._chunks():
            law = channel.law(self.question.values[first:last])
            if law is None:
                return
            yield self._of_mixture(law, self.boxes.of(first, last))

    def _chunks(self) -> Iterator[tuple[int, int]]:
        """Yield the first record and the one after the last that fit at once."""
        size = max(1, AT_ONCE // max(len(cuts) + 2 for cuts in self.cuts))
        begin, first = self.boxes.begin, 0
        while first < len(self.clean):
            few = int(np.searchsorted(begin, begin[first] + AT_ONCE, side="right")) - 1
            last = min(max(few, first + 1), first + size, len(self.clean))
            yield first, last
            first = last

    def _of_mixture(self, law: Mixture, boxes: Boxes) -> FloatArray:
        """Return the shares (n, K) of some records under their laws."""
        record, n = boxes.record, len(law.weights)
        masses: dict[tuple[int, int], FloatArray] = {}
        share = np.zeros(len(record))
        for weight, term in zip(law.weights.T, law.terms, strict=True):
            mass = weight[record]
            for axis, each in enumerate(term):
                key = axis, id(each)
                if key not in masses:
                    masses[key] = self._mass(each, axis, boxes, record)
                mass = mass * masses[key]
            share += mass
        cell = record * self.n_classes + boxes.answer
        sums = np.bincount(cell, weights=share, minlength=n * self.n_classes)
        return np.clip(sums.reshape(n, self.n_classes), 0.0, 1.0)

    def _mass(self, law: Law, axis: int, boxes: Boxes, record: Ints) -> FloatArray:
        """Return P(output on an axis lies in the box' part of it), (B,)."""
        cuts = self.cuts[axis]
        upto = np.zeros((law.n, len(cuts) + 2))
        upto[:, -1] = 1.0
        upto[:, 1:-1] = law.upto(cuts)
        row = record * upto.shape[1]
        flat = upto.ravel()
        return np.asarray(flat[row + boxes.high[axis]] - flat[row + boxes.low[axis]])

    def holds(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Say for each record whether its answer is the clean one in a closed box."""
        wrong, record = self._wrong
        meets = np.ones(len(record), dtype=bool)
        for axis, cuts in enumerate(self.cuts):
            first, last = (np.searchsorted(cuts, end[:, axis]) for end in (low, high))
            meets &= wrong.low[axis] <= last[record]
            meets &= wrong.high[axis] > first[record]
        hit = np.bincount(record[meets], minlength=len(self.clean))
        return np.asarray(hit == 0)

    @cached_property
    def _wrong(self) -> tuple[Boxes, Ints]:
        """The boxes of another answer than the clean one, and their records."""
        boxes, record = self.boxes, self.boxes.record
        other = boxes.answer != self.clean[record]
        part = boxes.low[:, other], boxes.high[:, other], boxes.answer[other]
        return Boxes(*part, boxes.begin), record[other]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the boxes, and the cuts of each axis."""
        cuts = {f"cuts_{axis}": each for axis, each in enumerate(self.cuts)}
        boxes = {name: getattr(self.boxes, name) for name in _PARTS}
        return {"clean": self.clean, "asked": self.asked, **boxes, **cuts}


_PARTS = ("low", "high", "answer", "begin")


def restored(question: Question, arrays: dict[str, NDArray[Any]]) -> Cells:
    """Return the surface whose ``arrays`` are given."""
    cuts = [arrays[f"cuts_{axis}"] for axis in range(len(question.sensitive))]
    boxes = Boxes(*(arrays[name] for name in _PARTS))
    k = len(question.model.classes_)
    return Cells(arrays["clean"], k, question, cuts, boxes, arrays["asked"])


def pruned(cuts: Sequence[FloatArray], boxes: Boxes) -> tuple[list[FloatArray], Boxes]:
    """Return the cuts at which some box ends, and the boxes between those."""
    kept, sides = [], []
    for axis, given in enumerate(cuts):
        used = np.zeros(len(given) + 2, dtype=bool)
        used[boxes.low[axis]] = used[boxes.high[axis]] = True
        kept.append(given[used[1:-1]])
        number = (np.cumsum(used) - 1).astype(boxes.low.dtype)
        sides.append((number[boxes.low[axis]], number[boxes.high[axis]]))
    low, high = (np.array(side) for side in zip(*sides, strict=True))
    return kept, Boxes(low, high, boxes.answer, boxes.begin)
