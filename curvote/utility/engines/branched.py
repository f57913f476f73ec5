"""The surface of an oracle: a partition made once, refined for the law at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.utility.channel import Channel
from curvote.utility.engines.base import Answers, Draws, Question, Surface
from curvote.utility.engines.boxes import Boxes, Weigh, filled, mass, roots, volume
from curvote.utility.engines.branch import Oracle, Search, Settled, judged
from curvote.utility.engines.reference import reference
from curvote.utility.engines.snapping import snap
from curvote.validate import FloatArray

# Laws are floats: their probabilities are trusted to this.
SLACK = 1e-9
# Records whose boxes are refined at once.
TOGETHER = 64
# Boxes of a record beyond which `holds` says no.
TRIED = 192
# Brackets wider than this say less than some 2,000 draws.
LOOSE = 0.05
NAMES = ("low", "high", "answer", "certain", "axis")


@dataclass(frozen=True)
class Effort:
    """How far to refine: ``width`` of the bracket wanted, or ``most`` boxes a record.

    ``together`` and ``stored`` are the boxes of all records, about: those that an
    answer takes, and those that a surface keeps.
    """

    width: float = 0.005
    most: int = 1 << 15
    together: int = 1 << 24
    stored: int = 1 << 19

    def each(self, n: int) -> int:
        """Return the boxes that one of n records may take in an answer."""
        return int(np.clip(self.together // max(n, 1), self.most // 8, self.most))

    def kept(self, n: int) -> int:
        """Return the boxes that a surface keeps of one of n records."""
        return int(np.clip(self.stored // max(n, 1), 128, self.most // 4))


@dataclass(frozen=True)
class Branched(Surface):
    """What branch and bound knows of a model around the records of a question."""

    question: Question
    oracle: Oracle
    boxes: Boxes
    effort: Effort

    def answers(self, channel: Channel, draws: Draws) -> Answers:
        """Return brackets of how often each class is answered; evidence ``bracket``.

        Where one is wider than `LOOSE`, draws stand beside all of them: both hold, the
        draws at their confidence, and the evidence is ``draws``. Nothing but draws
        where the channel has no law that is a mixture of products.
        """
        n = len(self.clean)
        chunks = [slice(i, i + TOGETHER) for i in range(0, n, TOGETHER)]
        found = [self._shares(channel, chunk) for chunk in chunks]
        if any(each is None for each in found):
            return self._drawn(channel, draws)
        share, lower = np.concatenate([e for e in found if e is not None], axis=1)
        known = bracket(share, lower)
        if not draws.number or (known.upper - known.lower <= LOOSE).all():
            return known
        return beside(known, self._drawn(channel, draws))

    def _shares(self, channel: Channel, chunk: slice) -> FloatArray | None:
        law = channel.law(self.question.values[chunk])
        if law is None:
            return None
        who = np.arange(len(self.clean))[chunk]
        search = Search(self.oracle, who, mass(law), snap(law))
        boxes = search.snapped(self.boxes.of(chunk))
        most = self.effort.each(len(self.clean))
        found = search.refined(boxes, narrow(self.effort.width), most)
        return shares(*found, self.n_classes)

    def _drawn(self, channel: Channel, draws: Draws) -> Answers:
        from curvote.utility.engines.black_box import BlackBox

        return BlackBox().surface(self.question).answers(channel, draws)

    def holds(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Say for each record whether its answer is certainly the clean one.

        No where the boxes that are tried do not suffice to be certain.
        """
        parts = self.boxes.within(low, high)
        other = parts.certain & (parts.answer != self.clean[:, None])
        held = np.asarray(~(other & ~parts.empty()).any(axis=1), dtype=np.bool_)
        rows = np.flatnonzero(held)
        open_ = _rows(*_packed([parts.of(held)], certain=False))
        found = self._tried(rows, open_, volume(low[rows], high[rows]))
        held[rows] = self._same(rows, found).all(axis=1)
        return held

    def _tried(self, rows: NDArray[np.intp], boxes: Boxes, weigh: Weigh) -> Boxes:
        """Return the boxes of some records, split until one has another answer."""
        boxes = judged(self.oracle, rows, boxes, ~boxes.empty())

        def known(
            at: NDArray[np.intp], boxes: Boxes, _: FloatArray
        ) -> NDArray[np.bool_]:
            other = boxes.certain & ~self._same(rows[at], boxes)
            return np.asarray(other.any(axis=1))

        return Search(self.oracle, rows, weigh).refined(boxes, known, boxes.m + TRIED)[
            0
        ]

    def _same(self, rows: NDArray[np.intp], boxes: Boxes) -> NDArray[np.bool_]:
        same = boxes.certain & (boxes.answer == self.clean[rows, None])
        return np.asarray(boxes.empty() | same)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the partition: boxes without the empty ones, and how many of each."""
        flat, counts = _packed([self.boxes])
        named = dict(zip(NAMES, flat, strict=True))
        return {"clean": self.clean, "counts": counts, **named}


def narrow(width: float) -> Settled:
    """Return what says that the boxes in doubt weigh at most ``width`` together."""
    return lambda _, boxes, weights: (weights * ~boxes.certain).sum(axis=1) <= width


def shares(boxes: Boxes, weights: FloatArray, n_classes: int) -> FloatArray:
    """Return what is guessed and what is certain of each class, (2, n, K)."""
    places = boxes.answer + n_classes * np.arange(boxes.n)[:, None]
    size = n_classes * boxes.n
    sums = [
        np.bincount(places.ravel(), each.ravel(), size)
        for each in (weights, weights * boxes.certain)
    ]
    return np.asarray(np.stack(sums).reshape(2, boxes.n, n_classes), dtype=np.float64)


def bracket(share: FloatArray, lower: FloatArray) -> Answers:
    """Return answers whose mass below ``lower`` (n, K) is certain.

    What is certain of no other class may be this one: nothing that was overlooked can
    make the bracket wrong.
    """
    least = np.clip(lower - SLACK, 0.0, 1.0)
    most = np.clip(1 - (least.sum(axis=1, keepdims=True) - least), 0.0, 1.0)
    queries = np.zeros(len(share), dtype=np.int64)
    return Answers(np.clip(share, least, most), least, most, "bracket", queries)


def beside(known: Answers, drawn: Answers) -> Answers:
    """Return what both say: the narrower of the ends, certain or at a confidence.

    Where draws had bad luck and contradict what is certain, that stands alone.
    """
    lower = np.maximum(known.lower, np.minimum(drawn.lower, known.upper))
    upper = np.minimum(known.upper, np.maximum(drawn.upper, known.lower))
    share = np.clip(drawn.share, lower, upper)
    return Answers(share, lower, upper, "draws", drawn.queries)


def branched(
    question: Question, oracle: Oracle, clean: NDArray[np.int64], effort: Effort
) -> Branched:
    """Return the surface: everything there is, split for a law that fits many.

    The reference has mass at the bounds, between them, and near the record's values.
    """
    n = len(clean)
    most = effort.kept(n)
    parts = []
    for start in range(0, n, TOGETHER):
        who = np.arange(start, min(start + TOGETHER, n))
        law = reference(question.values[who], question.bounds)
        search = Search(oracle, who, mass(law))
        boxes = roots(len(who), question.bounds)
        boxes = judged(oracle, who, boxes, np.full(boxes.certain.shape, True))
        parts.append(search.refined(boxes, narrow(effort.width), most)[0])
    flat, counts = _packed(parts)
    return Branched(
        clean, oracle.n_classes, question, oracle, _rows(flat, counts), effort
    )


def restored(
    question: Question, oracle: Oracle, arrays: dict[str, NDArray[Any]], effort: Effort
) -> Branched:
    """Return the surface whose ``arrays`` are given."""
    boxes = _rows([arrays[name] for name in NAMES], arrays["counts"])
    return Branched(arrays["clean"], oracle.n_classes, question, oracle, boxes, effort)


def _packed(
    parts: list[Boxes], *, certain: bool = True
) -> tuple[list[NDArray[Any]], NDArray[np.int64]]:
    """Return the boxes of all records without the empty ones, and each one's number.

    Without the certain ones, too, unless ``certain``.
    """
    kept = [~each.empty() & (certain | ~each.certain) for each in parts]
    counts = np.concatenate([each.sum(axis=1) for each in kept])
    flat = [
        [part[which] for part in boxes.parts()]
        for boxes, which in zip(parts, kept, strict=True)
    ]
    return [np.concatenate(each) for each in zip(*flat, strict=True)], counts


def _rows(flat: list[NDArray[Any]], counts: NDArray[np.int64]) -> Boxes:
    """Return rows of boxes, filled up with empty ones."""
    m = int(counts.max(initial=0))
    boxes = filled(len(counts), m, flat[0].shape[1])
    there = np.arange(m) < counts[:, None]
    for part, given in zip(boxes.parts(), flat, strict=True):
        part[there] = given
    return boxes
