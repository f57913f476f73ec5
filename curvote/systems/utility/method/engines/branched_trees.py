"""Engine of trees with too many cells: branch and bound on their thresholds."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from curvote.base.validate import FloatArray
from curvote.systems.utility.method.engines import base, branch
from curvote.systems.utility.method.engines.branch import Oracle, Verdict
from curvote.systems.utility.method.engines.trees import cells, engine

Ints = NDArray[np.int64]
Cells = NDArray[np.int32]

# Leaves of all trees: of more the bounds are so loose that draws are the better way.
MOST_LEAVES = 1 << 12
# Leaves times records: some ten minutes.
MOST_LEAVES_TIMES_RECORDS = 1 << 19
# Boxes times leaves that are looked at together.
BATCH_NUMBERS = 1 << 21
EFFORT = branch.Effort(most=1 << 14)


@dataclass(frozen=True)
class ReachedLeaves:
    """Leaves that one record can reach, ordered by tree.

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
class TreeBounds(Oracle):
    """Oracle that bounds sums of leaves by each tree's reachable extremes.

    ``need`` (K, K) is the least lead by which one class certainly wins over another.
    """

    cuts: Sequence[FloatArray]
    leaves_by_record: Sequence[ReachedLeaves]
    need: FloatArray
    n_classes: int

    def judge(
        self, who: NDArray[np.intp], low: FloatArray, high: FloatArray
    ) -> Verdict:
        """Return the verdict on the boxes, a record at a time."""
        first, last = (
            np.array(list(map(np.searchsorted, self.cuts, ends.T)), dtype=np.int32)
            for ends in (low, high)
        )
        answer, certain = np.zeros_like(who), np.zeros(len(who), dtype=np.bool_)
        effect = np.full(low.shape, -1.0)
        for i in np.unique(who):
            rows_of_record = np.flatnonzero(who == i)
            size = max(1, BATCH_NUMBERS // max(1, len(self.leaves_by_record[i].value)))
            for start in range(0, len(rows_of_record), size):
                at = rows_of_record[start : start + size]
                verdict = self._judge_record(
                    self.leaves_by_record[i], first[:, at], last[:, at]
                )
                answer[at], certain[at] = verdict.answer, verdict.certain
                effect[at] = verdict.effect
        return Verdict(answer, certain, effect)

    def _judge_record(
        self, reached: ReachedLeaves, first: Cells, last: Cells
    ) -> Verdict:
        middle = (first + last) // 2
        sums = reached.base + _leaves_met(reached, middle, middle) @ reached.value
        leads = sums[:, :, None] - sums[:, None, :]
        wins = (leads >= self.need) | np.eye(self.n_classes, dtype=np.bool_)
        answer = np.asarray(wins.sum(axis=2).argmax(axis=1))
        met = _leaves_met(reached, first, last)
        certain, doubt = np.full(len(met), False), np.zeros(met.shape)
        for c in np.unique(answer):
            at = answer == c
            certain[at], doubt[at] = self._certain_lead(reached, met[at], c)
        sides = []
        axes = zip(reached.low, reached.high, first, last, strict=True)
        for low, high, start, stop in axes:
            ends = (low > start[:, None]) | (high <= stop[:, None])
            sides.append(np.where(start < stop, (doubt * ends).sum(axis=1), -1.0))
        return Verdict(answer, certain, np.stack(sides, axis=1))

    def _certain_lead(
        self, reached: ReachedLeaves, met: NDArray[np.bool_], c: int
    ) -> tuple[NDArray[np.bool_], FloatArray]:
        """Return the mask of certain leads of class c, and the doubt by leaf."""
        certain, doubt = np.full(len(met), True), np.zeros(met.shape)
        for k in np.flatnonzero(np.arange(self.n_classes) != c):
            ahead = reached.value[:, c] - reached.value[:, k]
            least = _least_values(reached, met, ahead)
            most = -_least_values(reached, met, -ahead)
            lead = reached.base[c] - reached.base[k] + least.sum(axis=1)
            won = lead >= self.need[c, k]
            open_ = np.where(won[:, None], 0.0, most - least)
            sizes = np.diff(reached.first, append=len(reached.value))
            doubt += np.repeat(open_, sizes, axis=1)
            certain &= won
        return certain, doubt * met

    def cut(self, axis: Ints, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the middle one of the thresholds between the ends."""
        at = np.zeros(len(axis))
        for i, cuts in enumerate(self.cuts):
            on_axis = axis == i
            ends = (np.searchsorted(cuts, end[on_axis]) for end in (low, high))
            at[on_axis] = cuts[sum(ends) // 2] if len(cuts) else 0.0
        return at


def _leaves_met(reached: ReachedLeaves, first: Cells, last: Cells) -> NDArray[np.bool_]:
    """Return the mask of leaves that boxes of cells meet, (m, L)."""
    met = np.ones((first.shape[1], len(reached.value)), dtype=np.bool_)
    axes = zip(reached.low, reached.high, first, last, strict=True)
    for low, high, start, stop in axes:
        met &= (low <= stop[:, None]) & (high > start[:, None])
    return met


def _least_values(
    reached: ReachedLeaves, met: NDArray[np.bool_], value: FloatArray
) -> FloatArray:
    """Return the least value (L,) of each tree's leaves that are met, (m, T)."""
    values = np.where(met, value, np.inf)
    return np.asarray(np.minimum.reduceat(values, reached.first, axis=1))


def tree_bounds(
    question: base.Question, front: base.Front, trees: cells.TreeTable, cuts: cells.Axes
) -> TreeBounds:
    """Return the oracle for the question's trees around its records."""
    unit_values = cells.whole_units(trees)
    value, start = _pair_sums(unit_values.value), _pair_sums(unit_values.start[None])[0]
    values = trees.compared_values(front.features(question.records))
    reachable = cells.reachable_leaves(trees, cuts, values)
    number = np.searchsorted(trees.roots, reachable.node, side="right")
    ends = np.searchsorted(reachable.record, np.arange(len(question.records) + 1))
    parts = [np.arange(*pair) for pair in pairwise(ends)]
    reached = [_record_leaves(reachable, number, value, start, part) for part in parts]
    # The least certain leads: more than the slack, or the tie rule.
    k = len(start)
    if unit_values.slack:
        need = np.full((k, k), unit_values.slack + 1.0)
    else:
        first = np.triu(np.ones((k, k)))
        need = first if trees.rule == "not_negative" else 1 - first
    return TreeBounds(cuts.cuts, reached, need, k)


def _pair_sums(value: Ints) -> FloatArray:
    """Return values (N, C) as one sum a class; a single sum is the second's."""
    pair = np.hstack([0 * value, value]) if value.shape[1] == 1 else value
    return pair.astype(np.float64)


def _record_leaves(
    reachable: cells.Leaves,
    number: Ints,
    value: FloatArray,
    start: FloatArray,
    leaves: Ints,
) -> ReachedLeaves:
    """Return the leaves of one record; constant trees are added to ``base``."""
    leaves = leaves[np.argsort(number[leaves], kind="stable")]
    tree = number[leaves]
    _, place, sizes = np.unique(tree, return_inverse=True, return_counts=True)
    single = sizes[place] == 1
    varying = leaves[~single]
    first = np.flatnonzero(np.diff(number[varying], prepend=-1))
    constant = start + value[reachable.node[leaves[single]]].sum(axis=0)
    low, high = (
        side[:, varying].astype(np.int32) for side in (reachable.low, reachable.high)
    )
    return ReachedLeaves(low, high, value[reachable.node[varying]], first, constant)


class BranchedTrees(branch.BranchEngine):
    """Engine of tree ensembles with more cells than can be added up."""

    name = "branched_trees"
    effort = EFFORT

    def oracle(self, question: base.Question) -> TreeBounds:
        """Return the bounds of the trees' sums; UserError if refused."""
        return tree_bounds(question, *base.require(engine.read_trees(question)))

    def refusal(self, question: base.Question) -> str | None:
        """Return why the trees cannot be bounded, or None."""
        trees = engine.read_trees(question)
        if isinstance(trees, str):
            return trees
        count = int((trees[1].nodes.left_child < 0).sum())
        n = len(question.records)
        if count <= MOST_LEAVES and count * n <= MOST_LEAVES_TIMES_RECORDS:
            return None
        return (
            f"The trees have {count} leaves, for {n} records; bounds of more than"
            f" {MOST_LEAVES} leaves are loose, and those of more than"
            f" {MOST_LEAVES_TIMES_RECORDS} leaves times records slow."
        )
