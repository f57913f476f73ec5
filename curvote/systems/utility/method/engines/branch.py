"""Branch and bound on a model's answers under a law, with brackets valid at any time.

An oracle says of a box whether one class is answered in all of it. Boxes of which it
cannot are split, those of the largest probability first, until what is open is small.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product as every
from math import inf
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from curvote.base.validate import FloatArray
from curvote.mechanisms.base import Law, Mixture, Rest, product_law
from curvote.systems.utility.method.engines import base
from curvote.systems.utility.method.engines.black_box import draw_answers

# What boxes (k, m, s) of the records in rows (k,) weigh, (k, m).
Weigher = Callable[[NDArray[np.intp], FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class Boxes:
    """Boxes of n records, m of each: ``low`` and ``high`` (n, m, s).

    ``answer`` (n, m) is the class in the whole box where ``certain``, else the one at
    its centre. ``axis`` (n, m) is the coordinate to be split next, -1 for none. A box
    whose ``low`` exceeds its ``high`` is empty: it fills a shorter row.
    """

    low: FloatArray
    high: FloatArray
    answer: NDArray[np.int64]
    certain: NDArray[np.bool_]
    axis: NDArray[np.int64]

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.low)

    @property
    def m(self) -> int:
        """Number of boxes of each record, with the empty ones."""
        return int(self.low.shape[1])

    def select_columns(self, columns: NDArray[np.intp]) -> Boxes:
        """Return some boxes of each record by their columns (n, k)."""
        rows = np.arange(self.n)[:, None]
        return Boxes(*(part[rows, columns] for part in self.parts()))

    def of(self, which: slice | NDArray[np.bool_]) -> Boxes:
        """Return the boxes of some records."""
        return Boxes(*(part[which] for part in self.parts()))

    def within(self, low: FloatArray, high: FloatArray) -> Boxes:
        """Return the parts of the boxes inside each record's box, (n, s)."""
        start = np.maximum(self.low, low[:, None])
        return replace(self, low=start, high=np.minimum(self.high, high[:, None]))

    def empty(self) -> NDArray[np.bool_]:
        """Return the mask of boxes that only fill a row, (n, m)."""
        return np.asarray((self.low > self.high).any(axis=2))

    def parts(self) -> tuple[NDArray[Any], ...]:
        """Return the arrays in the order of the fields."""
        return tuple(vars(self).values())


def empty_boxes(n: int, m: int, s: int) -> Boxes:
    """Return empty boxes of this shape."""
    low, high = np.ones((n, m, s)), np.zeros((n, m, s))
    none = np.full((n, m), -1)
    return Boxes(low, high, np.zeros_like(none), np.full((n, m), True), none)


def root_boxes(n: int, bounds: FloatArray) -> Boxes:
    """Return the boxes that cover all space, cut at the bounds (s, 2): 5^s each.

    The bounds are boxes of their own, points: clipped outputs have their atoms there.
    """
    sides = []
    for low, high in bounds:
        below, above = np.nextafter([low, high], [-inf, inf])
        start, stop = np.nextafter([low, high], [inf, -inf])
        points = (low, low), (high, high)
        sides.append(((-inf, below), points[0], (start, stop), points[1], (above, inf)))
    ends = np.array(list(every(*sides)))
    low, high = np.moveaxis(np.broadcast_to(ends, (n, *ends.shape)), -1, 0)
    nothing = np.zeros(low.shape[:2], dtype=np.int64)  # no verdict yet
    return Boxes(low, high, nothing, nothing.astype(np.bool_), nothing)


def cut_points(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return a float in [low, high): the middle of two finite ends.

    Towards an infinite end it is twice as far from the origin as the finite one, at
    least by one.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        half = low + (high - low) / 2
    outward = np.where(low == -inf, high, low)
    away = outward + np.where(low == -inf, -1, 1) * np.maximum(np.abs(outward), 1.0)
    at = np.where(np.isfinite(low) & np.isfinite(high), half, away)
    return np.clip(at, low, np.nextafter(high, -inf))


def mass_weigher(law: Mixture) -> Weigher:
    """Return the function that weighs boxes by P(output in the box)."""

    def weigh(rows: NDArray[np.intp], low: FloatArray, high: FloatArray) -> FloatArray:
        row_law = law.select(rows)
        sides: dict[tuple[int, int], FloatArray] = {}
        total = np.zeros(low.shape[:2])
        for share, term in zip(row_law.weights.T, row_law.terms, strict=True):
            weight = np.broadcast_to(share[:, None], total.shape)
            for i, side in enumerate(term):
                if (i, id(side)) not in sides:
                    # Boxes share their ends, within a record and among records.
                    starts, stops = np.unique(low[..., i]), np.unique(high[..., i])
                    first = np.searchsorted(starts, low[..., i])
                    last = np.searchsorted(stops, high[..., i])
                    places = np.arange(side.n)[:, None]
                    mass = (
                        side.cdf(stops)[places, last]
                        - side.below(starts)[places, first]
                    )
                    sides[i, id(side)] = np.maximum(mass, 0.0)
                weight = weight * sides[i, id(side)]
            total += weight
        return total

    return weigh


def volume_weigher(low: FloatArray, high: FloatArray) -> Weigher:
    """Return the function that weighs boxes by their share of a larger box.

    Coordinates without width count as one.
    """
    widths = (high - low)[:, None]

    def weigh(rows: NDArray[np.intp], low: FloatArray, high: FloatArray) -> FloatArray:
        width, side = widths[rows], high - low
        shares = np.divide(side, width, out=np.ones_like(side), where=width > 0)
        return np.asarray(np.prod(np.maximum(shares, 0.0), axis=-1))

    return weigh


# What a law's atoms may leave over, and still be all of it: far below the slack.
REST_MASS = 1e-12

# Takes the boxes of records in rows (r,); what it cuts off has no mass.
BoxSnap = Callable[[NDArray[np.intp], Boxes], Boxes]


def keep_boxes(_: NDArray[np.intp], boxes: Boxes) -> Boxes:
    """Return the boxes as they are."""
    return boxes


def make_snap(law: Mixture) -> BoxSnap:
    """Return the function that cuts massless parts off boxes.

    Only coordinates with nothing but atoms count: a withheld feature becomes a point,
    levels become the ends of a side.
    """
    columns: dict[int, FloatArray] = {}  # all atoms (n, k) of a coordinate, in order
    for i in range(law.d):
        laws = [term[i] for term in law.terms]
        if all((side.masses.sum(axis=1) >= 1 - REST_MASS).all() for side in laws):
            points = np.concatenate([side.points for side in laws], axis=1)
            columns[i] = np.sort(points, axis=1)
    if not columns:
        return keep_boxes

    def shrink(rows: NDArray[np.intp], boxes: Boxes) -> Boxes:
        low, high = boxes.low.copy(), boxes.high.copy()
        for i, points in columns.items():
            # The ends (n, m) move to the atoms (n, k) inside, where there is one.
            sides = zip(points[rows], low[..., i], high[..., i], strict=True)
            for row, start, stop in sides:
                first = np.searchsorted(row, start, side="left")
                last = np.searchsorted(row, stop, side="right") - 1
                nonempty = first <= last
                start[nonempty] = row[first[nonempty]]
                stop[nonempty] = row[last[nonempty]]
        return replace(boxes, low=low, high=high)

    return shrink


# Boxes for which an oracle is asked at once: more would not stay near the processor.
ORACLE_BATCH = 1 << 12
# The part of all boxes that is split in one pass.
SPLIT_SHARE = 0.5
FEWEST = 32
# A box waits for the next pass if its weight is below this share of the heaviest's.
LIGHT_SHARE = 0.1

Rows = NDArray[np.intp]
SettledTest = Callable[[Rows, Boxes, FloatArray], NDArray[np.bool_]]


@dataclass(frozen=True)
class Verdict:
    """Verdict of an oracle on m boxes.

    Where ``certain`` (m,) the class ``answer`` (m,) is answered everywhere in the box;
    elsewhere it is a guess. ``effect`` (m, s) says how much of the doubt comes from
    each coordinate; negative: splitting it cannot help.
    """

    answer: NDArray[np.int64]
    certain: NDArray[np.bool_]
    effect: FloatArray


class Oracle(ABC):
    """Certain knowledge of a model's answers in boxes around n records."""

    n_classes: int

    @abstractmethod
    def judge(
        self, who: NDArray[np.intp], low: FloatArray, high: FloatArray
    ) -> Verdict:
        """Return the verdict on boxes ``low`` to ``high`` (m, s) of records ``who``."""

    def cut(
        self, axis: NDArray[np.int64], low: FloatArray, high: FloatArray
    ) -> FloatArray:
        """Return the cuts of sides ``low`` < ``high`` (m,) of coordinates ``axis``.

        Each at ``low`` or above it and below ``high``.
        """
        del axis
        return cut_points(low, high)


def judge_boxes(
    oracle: Oracle, who: NDArray[np.intp], boxes: Boxes, which: NDArray[np.bool_]
) -> Boxes:
    """Return the boxes with the oracle's verdict on those in ``which`` (n, m)."""
    rows, columns = np.nonzero(which)
    answer, certain = boxes.answer.copy(), boxes.certain.copy()
    axis = boxes.axis.copy()
    for start in range(0, len(rows), ORACLE_BATCH):
        at = rows[start : start + ORACLE_BATCH], columns[start : start + ORACLE_BATCH]
        low, high = boxes.low[at], boxes.high[at]
        verdict = oracle.judge(who[at[0]], low, high)
        answer[at], certain[at] = verdict.answer, verdict.certain
        finite_effect = np.nan_to_num(verdict.effect, posinf=1e300)
        endless = np.isinf(high - low) & (finite_effect >= 0)
        wide = np.where(endless, np.inf, np.where(high > low, finite_effect, -1.0))
        axis[at] = np.where((wide >= 0).any(axis=1), wide.argmax(axis=1), -1)
    return replace(boxes, answer=answer, certain=certain, axis=axis)


@dataclass(frozen=True)
class Search:
    """Search around the records ``who`` (n,) of an oracle, heaviest boxes first.

    ``snap`` takes off what weighs nothing.
    """

    oracle: Oracle
    who: NDArray[np.intp]
    weigh: Weigher
    snap: BoxSnap = keep_boxes

    def snap_boxes(self, boxes: Boxes) -> Boxes:
        """Return the boxes without their massless parts, judged again where open."""
        snapped = self.snap(np.arange(boxes.n), boxes)
        moved = (snapped.low != boxes.low) | (snapped.high != boxes.high)
        to_judge = moved.any(axis=2) & ~boxes.certain
        return judge_boxes(self.oracle, self.who, snapped, to_judge)

    def refined(
        self, boxes: Boxes, settled: SettledTest, most: int
    ) -> tuple[Boxes, FloatArray]:
        """Return boxes and weights, split until each record is settled.

        At most ``most`` boxes of each record. ``settled`` takes the places in ``who``
        of some records, their boxes and weights, and says so for each.
        """
        rows = np.arange(boxes.n)
        weights = self.weigh(rows, boxes.low, boxes.high)
        done = [(rows[:0], boxes.of(rows < 0), weights[:0])]
        while len(rows):
            waiting = weights * (~boxes.certain & (boxes.axis >= 0))
            waiting[settled(rows, boxes, weights)] = 0.0
            largest = waiting.max(axis=1, keepdims=True, initial=0.0)
            waiting = np.where(waiting < LIGHT_SHARE * largest, 0.0, waiting)
            active = (waiting > 0).any(axis=1) & np.array(boxes.m < most)
            done.append((rows[~active], boxes.of(~active), weights[~active]))
            rows, boxes, weights = rows[active], boxes.of(active), weights[active]
            if len(rows):
                size = min(most - boxes.m, max(FEWEST, int(SPLIT_SHARE * boxes.m)))
                size = min(size, int((waiting[active] > 0).sum(axis=1).max()))
                heaviest = np.argpartition(-waiting[active], size - 1, axis=1)
                columns = heaviest[:, :size]
                splits = np.take_along_axis(waiting[active], columns, axis=1) > 0
                boxes, weights = self._split(rows, boxes, weights, columns, splits)
        return _join_rows(done)

    def _split(
        self,
        rows: Rows,
        boxes: Boxes,
        weights: FloatArray,
        columns: Rows,
        splits: NDArray[np.bool_],
    ) -> tuple[Boxes, FloatArray]:
        """Return boxes and weights with some columns split in two."""
        halved = boxes.select_columns(columns)
        axis = halved.axis[splits]
        side = np.arange(len(axis)), axis
        ends = halved.low[splits][side], halved.high[splits][side]
        cut = np.zeros(splits.shape)
        cut[splits] = self.oracle.cut(axis, *ends)
        # Each box up to its cut and from there on; what is not split is whole.
        place = (*np.indices(halved.axis.shape), halved.axis)
        high, low = halved.high.copy(), halved.low.copy()
        high[place] = np.where(splits, cut, high[place])
        low[place] = np.where(splits, np.nextafter(cut, inf), inf)
        parted = replace(halved, high=high), replace(halved, low=low, certain=~splits)
        first, more = (
            judge_boxes(self.oracle, self.who[rows], self.snap(rows, part), splits)
            for part in parted
        )
        lighter, added = (
            self.weigh(rows, part.low, part.high) for part in (first, more)
        )
        weights = np.concatenate([weights, added], axis=1)
        np.put_along_axis(weights, columns, lighter, axis=1)
        places, parts = (np.arange(boxes.n)[:, None], columns), []
        arrays = zip(boxes.parts(), first.parts(), more.parts(), strict=True)
        for part, replaced, appended in arrays:
            parts.append(np.concatenate([part, appended], axis=1))
            parts[-1][places] = replaced
        return Boxes(*parts), weights


def _join_rows(
    finished: list[tuple[Rows, Boxes, FloatArray]],
) -> tuple[Boxes, FloatArray]:
    """Return the boxes and weights of all rows, shorter rows padded."""
    n = sum(len(rows) for rows, _, _ in finished)
    m = max(row_boxes.m for _, row_boxes, _ in finished)
    boxes, weights = empty_boxes(n, m, finished[0][1].low.shape[2]), np.zeros((n, m))
    for rows, part_boxes, part_weights in finished:
        weights[rows, : part_boxes.m] = part_weights
        for part, values in zip(boxes.parts(), part_boxes.parts(), strict=True):
            part[rows, : part_boxes.m] = values
    return boxes, weights


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
class BranchedSurface(base.Surface):
    """Surface of branch and bound: a partition around each record."""

    question: base.Question
    oracle: Oracle
    boxes: Boxes
    effort: Effort

    def answers(self, channel: base.Channel, draws: base.Draws) -> base.Answers:
        """Return brackets of how often each class is answered; evidence ``bracket``.

        Where one is wider than `LOOSE_WIDTH`, draws stand beside all of them: both
        hold, the draws at their confidence, and the evidence is ``draws``. Nothing but
        draws where the channel has no law that is a mixture of products.
        """
        n, limits, parts = len(self.clean), self.effort, []
        most = int(np.clip(limits.together // n, limits.most // 8, limits.most))
        for start in range(0, n, RECORDS_AT_ONCE):
            who = np.arange(start, min(start + RECORDS_AT_ONCE, n))
            law = channel.law(self.question.values[who])
            if law is None:
                return draw_answers(self, self.question, channel, draws)
            search = Search(self.oracle, who, mass_weigher(law), make_snap(law))
            boxes = search.snap_boxes(self.boxes.of(slice(start, who[-1] + 1)))
            refined = search.refined(boxes, stop_when_narrow(limits.width), most)
            parts.append(box_shares(*refined, self.n_classes))
        bracket = bracket_from_certain(*np.concatenate(parts, axis=1))
        if not draws.number or (bracket.upper - bracket.lower <= LOOSE_WIDTH).all():
            return bracket
        sample = draw_answers(self, self.question, channel, draws)
        return intersect_answers(bracket, sample)

    def holds(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Return whether each record's answer is certainly the clean one in a box.

        No where the boxes that are tried do not suffice to be certain.
        """
        parts = self.boxes.within(low, high)
        other = parts.certain & (parts.answer != self.clean[:, None])
        certain = np.asarray(~(other & ~parts.empty()).any(axis=1), dtype=np.bool_)
        rows = np.flatnonzero(certain)
        part = parts.of(certain)
        open_ = _pick_boxes(part, ~(part.empty() | part.certain))
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
        which = ~self.boxes.empty()
        named = {name: part[which] for name, part in vars(self.boxes).items()}
        return {"clean": self.clean, "counts": which.sum(axis=1), **named}


def stop_when_narrow(width: float) -> SettledTest:
    """Return the stopping rule: open boxes weigh at most ``width`` together."""
    return lambda _, boxes, weights: (weights * ~boxes.certain).sum(axis=1) <= width


def box_shares(boxes: Boxes, weights: FloatArray, n_classes: int) -> FloatArray:
    """Return the guessed and the certain mass of each class, (2, n, K)."""
    places = boxes.answer + n_classes * np.arange(boxes.n)[:, None]
    masses, size = (weights, weights * boxes.certain), n_classes * boxes.n
    sums = [np.bincount(places.ravel(), mass.ravel(), size) for mass in masses]
    return np.asarray(np.stack(sums).reshape(2, boxes.n, n_classes), dtype=np.float64)


def bracket_from_certain(share: FloatArray, lower: FloatArray) -> base.Answers:
    """Return answers whose mass below ``lower`` (n, K) is certain.

    What is certain of no other class may be this one: nothing that was overlooked can
    make the bracket wrong.
    """
    least = np.clip(lower - SLACK, 0.0, 1.0)
    most = np.clip(1 - (least.sum(axis=1, keepdims=True) - least), 0.0, 1.0)
    queries = np.zeros(len(share), dtype=np.int64)
    return base.Answers(np.clip(share, least, most), least, most, "bracket", queries)


def intersect_answers(certain: base.Answers, sample: base.Answers) -> base.Answers:
    """Return the intersection of certain brackets and drawn intervals.

    Where draws had bad luck and contradict what is certain, that stands alone.
    """
    lower = np.maximum(certain.lower, np.minimum(sample.lower, certain.upper))
    upper = np.minimum(certain.upper, np.maximum(sample.upper, certain.lower))
    share = np.clip(sample.share, lower, upper)
    return base.Answers(share, lower, upper, "draws", sample.queries)


def _pick_boxes(boxes: Boxes, which: NDArray[np.bool_]) -> Boxes:
    """Return the boxes in ``which`` (n, m) alone, in rows as short as can be."""
    return _pad_rows([part[which] for part in boxes.parts()], which.sum(axis=1))


def _pad_rows(flat: list[NDArray[Any]], counts: NDArray[np.int64]) -> Boxes:
    """Return rows of boxes, padded with empty ones."""
    m = int(counts.max(initial=0))
    boxes = empty_boxes(len(counts), m, flat[0].shape[1])
    filled_places = np.arange(m) < counts[:, None]
    for part, values in zip(boxes.parts(), flat, strict=True):
        part[filled_places] = values
    return boxes


class BranchEngine(base.Engine):
    """Engine that splits boxes until an oracle is certain or ``effort`` ends."""

    effort: ClassVar[Effort] = Effort()

    @abstractmethod
    def oracle(self, question: base.Question) -> Oracle:
        """Return the oracle around the records; UserError if refused."""

    def surface(self, question: base.Question) -> base.Surface:
        """Return the surface of an oracle, split for a reference law.

        The reference has mass at the bounds, between them, and near the values.
        """
        clean = base.predict_indices(question.model, question.records)
        oracle, limits = self.oracle(question), self.effort
        n = len(clean)
        parts: list[tuple[Rows, Boxes, FloatArray]] = []
        most = int(np.clip(limits.stored // n, 128, limits.most // 4))
        for start in range(0, n, RECORDS_AT_ONCE):
            who = np.arange(start, min(start + RECORDS_AT_ONCE, n))
            law = reference_law(question.values[who], question.bounds)
            search = Search(oracle, who, mass_weigher(law))
            boxes = root_boxes(len(who), question.bounds)
            boxes = judge_boxes(oracle, who, boxes, np.full(boxes.certain.shape, True))
            settled = stop_when_narrow(limits.width)
            parts.append((who, *search.refined(boxes, settled, most)))
        joined, _ = _join_rows(parts)
        boxes, k = _pick_boxes(joined, ~joined.empty()), oracle.n_classes
        return BranchedSurface(clean, k, question, oracle, boxes, limits)

    def restored(
        self, question: base.Question, arrays: dict[str, NDArray[Any]]
    ) -> base.Surface:
        """Return the surface built again from its ``arrays``."""
        oracle, clean = self.oracle(question), arrays["clean"]
        flat = [arrays[name] for name in Boxes.__dataclass_fields__]
        boxes = _pad_rows(flat, arrays["counts"])
        k = oracle.n_classes
        return BranchedSurface(clean, k, question, oracle, boxes, self.effort)
