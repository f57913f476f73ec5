"""The leaves that a record's other features leave reachable, as boxes of cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.utility.engines.trees.axes import Axes
from curvote.utility.engines.trees.table import Nodes, TreeTable
from curvote.validate import FloatArray


@dataclass(frozen=True)
class Leaves:
    """Reachable leaves: record, node, and the cells they fill.

    ``low`` and ``high`` (s, L) are the first cell on each axis and the one after the
    last. Leaves are ordered by record.
    """

    record: NDArray[np.int64]
    node: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]


def reachable_leaves(table: TreeTable, axes: Axes, values: FloatArray) -> Leaves:
    """Return the leaves that records (n, D), as trees compare them, can reach.

    All paths of all trees and records go down together, a level at a time. A path is a
    column of ``paths``: record, node, first cells, cells after the last.
    """
    s, nodes = len(axes.cuts), table.nodes
    paths, finished = _root_paths(table, axes, len(values)), []
    while paths.shape[1]:
        ended = nodes.left_child[paths[1]] < 0
        finished.append(paths[:, ended])
        paths = paths[:, ~ended]
        split = axes.place[paths[1]] >= 0
        decided = paths[:, ~split]
        decided[1] = _follow_values(nodes, values, decided)
        paths = np.hstack([decided, *_follow_both(nodes, axes, paths[:, split])])
    ended_paths = np.hstack(finished)
    ended_paths = ended_paths[:, np.argsort(ended_paths[0], kind="stable")]
    return Leaves(
        ended_paths[0], ended_paths[1], ended_paths[2 : 2 + s], ended_paths[2 + s :]
    )


def _root_paths(table: TreeTable, axes: Axes, n: int) -> NDArray[np.int64]:
    """Return the paths at the roots: every tree for every record."""
    t, s = len(table.roots), len(axes.cuts)
    paths = np.zeros((2 + 2 * s, n * t), dtype=np.int64)
    paths[0], paths[1] = np.repeat(np.arange(n), t), np.tile(table.roots, n)
    paths[2 + s :] = axes.ends[:, None]
    return paths


def _follow_values(
    nodes: Nodes, values: FloatArray, paths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the next node of each path by the record's own value."""
    at = paths[1]
    value = values[paths[0], nodes.feature[at]]
    goes = value <= nodes.threshold[at]
    categorical = np.flatnonzero(nodes.category[at] >= 0)
    if len(categorical):
        goes[categorical] = _category_goes_left(
            nodes, at[categorical], value[categorical]
        )
    goes = np.where(np.isnan(value), nodes.gap_left[at], goes)
    return np.asarray(np.where(goes, nodes.left_child[at], nodes.right_child[at]))


def _category_goes_left(
    nodes: Nodes, at: NDArray[np.int64], value: FloatArray
) -> NDArray[np.bool_]:
    """Return whether each category goes left."""
    code = np.nan_to_num(value).astype(np.int64)
    word = nodes.bits[nodes.category[at], code // 32]
    return np.asarray((word >> (code % 32).astype(np.uint32)) & 1 == 1)


def _follow_both(
    nodes: Nodes, axes: Axes, paths: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Return the paths on both sides of sensitive splits, the nonempty ones."""
    s, at = len(axes.cuts), paths[1]
    low, high = 2 + axes.place[at], 2 + s + axes.place[at]
    middle, all_paths = axes.rank[at] + 1, np.arange(len(at))
    lefts = np.flatnonzero(paths[low, all_paths] < middle)
    rights = np.flatnonzero(paths[high, all_paths] > middle)
    left_paths, right_paths = paths[:, lefts], paths[:, rights]
    left_paths[1], right_paths[1] = (
        nodes.left_child[at[lefts]],
        nodes.right_child[at[rights]],
    )
    ends, starts = (
        (high[lefts], all_paths[: len(lefts)]),
        (low[rights], all_paths[: len(rights)]),
    )
    left_paths[ends] = np.minimum(left_paths[ends], middle[lefts])
    right_paths[starts] = np.maximum(right_paths[starts], middle[rights])
    return [left_paths, right_paths]
