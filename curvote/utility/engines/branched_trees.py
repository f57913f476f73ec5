"""Trees whose cells are too many to add up: branch and bound on their thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.utility.engines.asking import places
from curvote.utility.engines.base import Engine, Question, Surface
from curvote.utility.engines.branch import Oracle, Verdict
from curvote.utility.engines.branched import Effort, branched, restored
from curvote.utility.engines.fronts import Front
from curvote.utility.engines.trees.axes import Axes
from curvote.utility.engines.trees.engine import read
from curvote.utility.engines.trees.reach import Leaves, leaves
from curvote.utility.engines.trees.sums import units
from curvote.utility.engines.trees.table import Table
from curvote.validate import FloatArray

Ints = NDArray[np.int64]
Cells = NDArray[np.int32]

# Leaves of all trees: of more the bounds are so loose that draws are the better way.
MOST_LEAVES = 1 << 12
# Leaves times records: some ten minutes.
MOST = 1 << 19
# Boxes times leaves that are looked at together.
AT_ONCE = 1 << 21
EFFORT = Effort(most=1 << 14)


@dataclass(frozen=True)
class Reached:
    """The leaves that one record can reach, ordered by tree.

    Leaf l fills the cells ``low`` to before ``high`` (s, L) and adds ``value`` (L, K);
    trees begin at ``first`` (T,). ``base`` (K,) comes from everywhere else. Values are
    whole numbers below 2^52, as are all their sums: floats add them exactly.
    """

    low: Cells
    high: Cells
    value: FloatArray
    first: Ints
    base: FloatArray


@dataclass(frozen=True)
class Extremes(Oracle):
    """Bounds of sums of leaves: of each tree the least of those that a box reaches.

    ``need`` (K, K) is the least lead by which one class certainly wins over another.
    """

    cuts: Sequence[FloatArray]
    reached: Sequence[Reached]
    need: FloatArray
    n_classes: int

    def judged(
        self, who: NDArray[np.intp], low: FloatArray, high: FloatArray
    ) -> Verdict:
        """Judge the boxes, a record at a time."""
        first, last = (self._cells(end) for end in (low, high))
        answer, certain = np.zeros_like(who), np.zeros(len(who), dtype=np.bool_)
        effect = np.full(low.shape, -1.0)
        for i in np.unique(who):
            here = np.flatnonzero(who == i)
            size = max(1, AT_ONCE // max(1, len(self.reached[i].value)))
            for start in range(0, len(here), size):
                at = here[start : start + size]
                found = self._of_record(self.reached[i], first[:, at], last[:, at])
                answer[at], certain[at] = found.answer, found.certain
                effect[at] = found.effect
        return Verdict(answer, certain, effect)

    def _cells(self, ends: FloatArray) -> Cells:
        """Return the cells in which ends (m, s) lie, (s, m)."""
        columns = zip(self.cuts, ends.T, strict=True)
        found = [np.searchsorted(cuts, column) for cuts, column in columns]
        return np.array(found, dtype=np.int32)

    def _of_record(self, of: Reached, first: Cells, last: Cells) -> Verdict:
        """Judge boxes of the cells ``first`` to ``last`` (s, m) of one record."""
        middle = (first + last) // 2
        answer = self._won(of.base + _met(of, middle, middle) @ of.value)
        met = _met(of, first, last)
        certain, doubt = np.full(len(met), False), np.zeros(met.shape)
        for c in np.unique(answer):
            at = answer == c
            certain[at], doubt[at] = self._lead(of, met[at], c)
        return Verdict(answer, certain, _effects(of, first, last, doubt))

    def _won(self, sums: FloatArray) -> Ints:
        """Return the class that leads all others where there is one, (m,)."""
        leads = sums[:, :, None] - sums[:, None, :]
        wins = (leads >= self.need) | np.eye(self.n_classes, dtype=np.bool_)
        return np.asarray(wins.sum(axis=2).argmax(axis=1))

    def _lead(
        self, of: Reached, met: NDArray[np.bool_], c: int
    ) -> tuple[NDArray[np.bool_], FloatArray]:
        """Say where class c certainly leads, and how much is open at each leaf met."""
        certain, doubt = np.full(len(met), True), np.zeros(met.shape)
        for k in np.flatnonzero(np.arange(self.n_classes) != c):
            ahead = of.value[:, c] - of.value[:, k]
            least, most = _least(of, met, ahead), -_least(of, met, -ahead)
            lead = of.base[c] - of.base[k] + least.sum(axis=1)
            won = lead >= self.need[c, k]
            open_ = np.where(won[:, None], 0.0, most - least)
            doubt += np.repeat(open_, _sizes(of), axis=1)
            certain &= won
        return certain, doubt * met

    def cut(self, axis: Ints, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the middle one of the thresholds between the ends."""
        at = np.zeros(len(axis))
        for i, cuts in enumerate(self.cuts):
            here = axis == i
            ends = (np.searchsorted(cuts, end[here]) for end in (low, high))
            at[here] = cuts[sum(ends) // 2] if len(cuts) else 0.0
        return at


def _met(of: Reached, first: Cells, last: Cells) -> NDArray[np.bool_]:
    """Say which leaves boxes of cells ``first`` to ``last`` (s, m) meet, (m, L)."""
    met = np.ones((first.shape[1], len(of.value)), dtype=np.bool_)
    for low, high, start, stop in zip(of.low, of.high, first, last, strict=True):
        met &= (low <= stop[:, None]) & (high > start[:, None])
    return met


def _sizes(of: Reached) -> Ints:
    """Return how many leaves each tree has, (T,)."""
    return np.diff(of.first, append=len(of.value))


def _least(of: Reached, met: NDArray[np.bool_], value: FloatArray) -> FloatArray:
    """Return the least value (L,) of each tree's leaves that are met, (m, T)."""
    found = np.where(met, value, np.inf)
    return np.asarray(np.minimum.reduceat(found, of.first, axis=1))


def _effects(of: Reached, first: Cells, last: Cells, doubt: FloatArray) -> FloatArray:
    """Return how much doubt (m, L) is at leaves that end within a box, by axis."""
    sides = []
    for low, high, start, stop in zip(of.low, of.high, first, last, strict=True):
        ends = (low > start[:, None]) | (high <= stop[:, None])
        sides.append(np.where(start < stop, (doubt * ends).sum(axis=1), -1.0))
    return np.stack(sides, axis=1)


def extremes(question: Question, front: Front, trees: Table, cuts: Axes) -> Extremes:
    """Return the bounds of the question's trees around its records."""
    whole = units(trees)
    value, start = _paired(whole.value), _paired(whole.start[None])[0]
    found = leaves(trees, cuts, trees.seen(front.features(question.records)))
    number = np.searchsorted(trees.roots, found.node, side="right")
    ends = np.searchsorted(found.record, np.arange(len(question.records) + 1))
    parts = [np.arange(*pair) for pair in pairwise(ends)]
    reached = [_reached(found, number, value, start, part) for part in parts]
    need = _need(trees, whole.slack, len(start))
    return Extremes(cuts.cuts, reached, need, len(start))


def _paired(value: Ints) -> FloatArray:
    """Return values (N, C) of as many sums as classes: one sum is the second's."""
    both = np.hstack([0 * value, value]) if value.shape[1] == 1 else value
    return both.astype(np.float64)


def _need(trees: Table, slack: int, k: int) -> FloatArray:
    """Return the least leads: more than the slack; without one ties are decided."""
    if slack:
        return np.full((k, k), slack + 1.0)
    first = np.triu(np.ones((k, k)))
    return first if trees.rule == "not_negative" else 1 - first


def _reached(
    found: Leaves, number: Ints, value: FloatArray, start: FloatArray, of: Ints
) -> Reached:
    """Return the leaves ``of`` one record; trees that reach one leaf only are added."""
    of = of[np.argsort(number[of], kind="stable")]
    _, place, sizes = np.unique(number[of], return_inverse=True, return_counts=True)
    fixed = sizes[place] == 1
    kept = of[~fixed]
    first = np.flatnonzero(np.diff(number[kept], prepend=-1))
    base = start + value[found.node[of[fixed]]].sum(axis=0)
    low, high = (side[:, kept].astype(np.int32) for side in (found.low, found.high))
    return Reached(low, high, value[found.node[kept]], first, base)


class BranchedTrees(Engine):
    """Ensembles of shallow trees with more cells than can be added up."""

    name = "branched_trees"

    def refusal(self, question: Question) -> str | None:
        """Return why the trees cannot be bounded, or None."""
        found = read(question)
        if isinstance(found, str):
            return found
        return _too_many(int((found[1].nodes.left < 0).sum()), len(question.records))

    def surface(self, question: Question) -> Surface:
        """Return what is known around the records; UserError if refused."""
        clean = places(question.model, question.records)
        return branched(question, _oracle(question), clean, EFFORT)

    def restored(self, question: Question, arrays: dict[str, NDArray[Any]]) -> Surface:
        """Return the surface whose ``arrays`` are given."""
        return restored(question, _oracle(question), arrays, EFFORT)


def _too_many(count: int, n: int) -> str | None:
    if count <= MOST_LEAVES and count * n <= MOST:
        return None
    return (
        f"The trees have {count} leaves, for {n} records; bounds of more than"
        f" {MOST_LEAVES} leaves are loose, and those of more than {MOST} leaves times"
        " records slow."
    )


def _oracle(question: Question) -> Extremes:
    found = read(question)
    if isinstance(found, str):
        raise UserError(found)
    return extremes(question, *found)
