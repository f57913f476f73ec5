"""Surface of branch and bound: a partition made once, for a reference law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.validate import FloatArray
from curvote.mechanisms.base import Law, Mixture, Rest, product_law
from curvote.systems.utility.method.channel import Channel
from curvote.systems.utility.method.engines.base import (
    Answers,
    Draws,
    Question,
    Surface,
)
from curvote.systems.utility.method.engines.branch import (
    Boxes,
    Oracle,
    Search,
    SettledTest,
    empty_boxes,
    judge_boxes,
    make_snap,
    mass_weigher,
    root_boxes,
    volume_weigher,
)

EDGE = 0.15
# Of what lies between the bounds: how much near the value, and how near (of the width).
NEAR = 0.5
SPREAD = 0.1


def reference_law(values: FloatArray, bounds: FloatArray) -> Mixture:
    """Return the reference laws of n records (n, s)."""
    laws = []
    for column, (low, high) in zip(values.T, bounds, strict=True):
        inside = np.clip(column, low, high)[:, None]
        points = np.broadcast_to([[low, high]], (len(column), 2))
        masses = np.full(points.shape, EDGE)
        rest = _continuous_part(low, high)
        laws.append(Law(points, masses, rest, inside, low, high))
    return product_law(*laws)


def _continuous_part(low: float, high: float) -> Rest:
    """Return the part of the law without atoms, all of it between the bounds."""
    spread = SPREAD * (high - low)

    def rest(value: FloatArray, at: FloatArray) -> FloatArray:
        inside = np.clip(at, low, high)
        start, middle, stop = (
            np.arctan((place - value) / spread) for place in (low, inside, high)
        )
        peak = (middle - start) / (stop - start)
        even = (inside - low) / (high - low)
        return np.asarray((1 - 2 * EDGE) * ((1 - NEAR) * even + NEAR * peak))

    return rest


# Laws are floats: their probabilities are trusted to this.
SLACK = 1e-9
# Records whose boxes are refined at once.
RECORDS_AT_ONCE = 64
# Boxes of a record beyond which `holds` says no.
TRIED_BOXES = 192
# Brackets wider than this say less than some 2,000 draws.
LOOSE_WIDTH = 0.05
BOX_FIELDS = ("low", "high", "answer", "certain", "axis")


@dataclass(frozen=True)
class Effort:
    """Limits of refinement: bracket ``width`` wanted, or ``most`` boxes a record.

    ``together`` and ``stored`` are the boxes of all records, about: those that an
    answer takes, and those that a surface keeps.
    """

    width: float = 0.005
    most: int = 1 << 15
    together: int = 1 << 24
    stored: int = 1 << 19


@dataclass(frozen=True)
class BranchedSurface(Surface):
    """Surface of branch and bound: a partition around each record."""

    question: Question
    oracle: Oracle
    boxes: Boxes
    effort: Effort

    def answers(self, channel: Channel, draws: Draws) -> Answers:
        """Return brackets of how often each class is answered; evidence ``bracket``.

        Where one is wider than `LOOSE_WIDTH`, draws stand beside all of them: both
        hold, the draws at their confidence, and the evidence is ``draws``. Nothing but
        draws where the channel has no law that is a mixture of products.
        """
        n = len(self.clean)
        chunks = [slice(i, i + RECORDS_AT_ONCE) for i in range(0, n, RECORDS_AT_ONCE)]
        parts = [self._chunk_shares(channel, chunk) for chunk in chunks]
        known_parts = [part for part in parts if part is not None]
        if len(known_parts) < len(parts):
            return self._draw(channel, draws)
        bracket = bracket_from_certain(*np.concatenate(known_parts, axis=1))
        if not draws.number or (bracket.upper - bracket.lower <= LOOSE_WIDTH).all():
            return bracket
        return intersect_answers(bracket, self._draw(channel, draws))

    def _chunk_shares(self, channel: Channel, chunk: slice) -> FloatArray | None:
        """Return guessed and certain shares of a chunk, None without a law."""
        law = channel.law(self.question.values[chunk])
        if law is None:
            return None
        who = np.arange(len(self.clean))[chunk]
        search = Search(self.oracle, who, mass_weigher(law), make_snap(law))
        boxes = search.snap_boxes(self.boxes.of(chunk))
        limits, n = self.effort, max(len(self.clean), 1)
        most = int(np.clip(limits.together // n, limits.most // 8, limits.most))
        refined_boxes = search.refined(boxes, stop_when_narrow(self.effort.width), most)
        return box_shares(*refined_boxes, self.n_classes)

    def _draw(self, channel: Channel, draws: Draws) -> Answers:
        """Return shares drawn by the black box."""
        from curvote.systems.utility.method.engines.black_box import BlackBox

        return BlackBox().surface(self.question).answers(channel, draws)

    def holds(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Return whether each record's answer is certainly the clean one in a box.

        No where the boxes that are tried do not suffice to be certain.
        """
        parts = self.boxes.within(low, high)
        other = parts.certain & (parts.answer != self.clean[:, None])
        certain = np.asarray(~(other & ~parts.empty()).any(axis=1), dtype=np.bool_)
        rows = np.flatnonzero(certain)
        open_ = _pad_rows(*_flatten_boxes([parts.of(certain)], certain=False))
        open_ = judge_boxes(self.oracle, rows, open_, ~open_.empty())

        def refuted(at: NDArray[Any], boxes: Boxes, _: FloatArray) -> NDArray[Any]:
            other = boxes.certain & ~self._agrees(rows[at], boxes)
            return np.asarray(other.any(axis=1))

        search = Search(self.oracle, rows, volume_weigher(low[rows], high[rows]))
        tried, _ = search.refined(open_, refuted, open_.m + TRIED_BOXES)
        certain[rows] = self._agrees(rows, tried).all(axis=1)
        return certain

    def _agrees(self, rows: NDArray[np.intp], boxes: Boxes) -> NDArray[np.bool_]:
        """Return the mask of boxes that are empty or certainly clean."""
        same = boxes.certain & (boxes.answer == self.clean[rows, None])
        return np.asarray(boxes.empty() | same)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the partition: nonempty boxes, and how many of each record."""
        flat, counts = _flatten_boxes([self.boxes])
        named = dict(zip(BOX_FIELDS, flat, strict=True))
        return {"clean": self.clean, "counts": counts, **named}


def stop_when_narrow(width: float) -> SettledTest:
    """Return the stopping rule: open boxes weigh at most ``width`` together."""
    return lambda _, boxes, weights: (weights * ~boxes.certain).sum(axis=1) <= width


def box_shares(boxes: Boxes, weights: FloatArray, n_classes: int) -> FloatArray:
    """Return the guessed and the certain mass of each class, (2, n, K)."""
    places = boxes.answer + n_classes * np.arange(boxes.n)[:, None]
    masses, size = (weights, weights * boxes.certain), n_classes * boxes.n
    sums = [np.bincount(places.ravel(), mass.ravel(), size) for mass in masses]
    return np.asarray(np.stack(sums).reshape(2, boxes.n, n_classes), dtype=np.float64)


def bracket_from_certain(share: FloatArray, lower: FloatArray) -> Answers:
    """Return answers whose mass below ``lower`` (n, K) is certain.

    What is certain of no other class may be this one: nothing that was overlooked can
    make the bracket wrong.
    """
    least = np.clip(lower - SLACK, 0.0, 1.0)
    most = np.clip(1 - (least.sum(axis=1, keepdims=True) - least), 0.0, 1.0)
    queries = np.zeros(len(share), dtype=np.int64)
    return Answers(np.clip(share, least, most), least, most, "bracket", queries)


def intersect_answers(certain: Answers, sample: Answers) -> Answers:
    """Return the intersection of certain brackets and drawn intervals.

    Where draws had bad luck and contradict what is certain, that stands alone.
    """
    lower = np.maximum(certain.lower, np.minimum(sample.lower, certain.upper))
    upper = np.minimum(certain.upper, np.maximum(sample.upper, certain.lower))
    share = np.clip(sample.share, lower, upper)
    return Answers(share, lower, upper, "draws", sample.queries)


def branch_surface(
    question: Question, oracle: Oracle, clean: NDArray[np.int64], effort: Effort
) -> BranchedSurface:
    """Return the surface of an oracle, split for a reference law.

    The reference has mass at the bounds, between them, and near the record's values.
    """
    n, parts = len(clean), []
    most = int(np.clip(effort.stored // max(n, 1), 128, effort.most // 4))
    for start in range(0, n, RECORDS_AT_ONCE):
        who = np.arange(start, min(start + RECORDS_AT_ONCE, n))
        law = reference_law(question.values[who], question.bounds)
        search = Search(oracle, who, mass_weigher(law))
        boxes = root_boxes(len(who), question.bounds)
        boxes = judge_boxes(oracle, who, boxes, np.full(boxes.certain.shape, True))
        parts.append(search.refined(boxes, stop_when_narrow(effort.width), most)[0])
    boxes = _pad_rows(*_flatten_boxes(parts))
    return BranchedSurface(clean, oracle.n_classes, question, oracle, boxes, effort)


def restore_branched(
    question: Question, oracle: Oracle, arrays: dict[str, NDArray[Any]], effort: Effort
) -> BranchedSurface:
    """Return the surface built again from its ``arrays``."""
    boxes = _pad_rows([arrays[name] for name in BOX_FIELDS], arrays["counts"])
    clean = arrays["clean"]
    return BranchedSurface(clean, oracle.n_classes, question, oracle, boxes, effort)


def _flatten_boxes(
    parts: list[Boxes], *, certain: bool = True
) -> tuple[list[NDArray[Any]], NDArray[np.int64]]:
    """Return the nonempty boxes of all records, and each record's number.

    Without the certain ones, too, unless ``certain``.
    """
    flat, counts = [], []
    for boxes in parts:
        which = ~boxes.empty() & (certain | ~boxes.certain)
        counts.append(which.sum(axis=1))
        flat.append([part[which] for part in boxes.parts()])
    columns = [np.concatenate(column) for column in zip(*flat, strict=True)]
    return columns, np.concatenate(counts)


def _pad_rows(flat: list[NDArray[Any]], counts: NDArray[np.int64]) -> Boxes:
    """Return rows of boxes, padded with empty ones."""
    m = int(counts.max(initial=0))
    boxes = empty_boxes(len(counts), m, flat[0].shape[1])
    filled_places = np.arange(m) < counts[:, None]
    for part, values in zip(boxes.parts(), flat, strict=True):
        part[filled_places] = values
    return boxes
