"""The leaves that a record's other features leave reachable, as boxes of cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.utility.engines.trees.axes import Axes
from curvote.utility.engines.trees.table import Nodes, Table
from curvote.validate import FloatArray


@dataclass(frozen=True)
class Leaves:
    """L reachable leaves: of which record, which node, and the cells they fill.

    ``low`` and ``high`` (s, L) are the first cell on each axis and the one after the
    last. Leaves are ordered by record.
    """

    record: NDArray[np.int64]
    node: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]


def leaves(table: Table, axes: Axes, seen: FloatArray) -> Leaves:
    """Return the leaves that records, (n, D) as trees compare them, can reach.

    All paths of all trees and records go down together, a level at a time. A path is a
    column of ``paths``: record, node, first cells, cells after the last.
    """
    s, nodes = len(axes.cuts), table.nodes
    paths, done = _begun(table, axes, len(seen)), []
    while paths.shape[1]:
        ended = nodes.left[paths[1]] < 0
        done.append(paths[:, ended])
        paths = paths[:, ~ended]
        split = axes.place[paths[1]] >= 0
        decided = paths[:, ~split]
        decided[1] = _followed(nodes, seen, decided)
        paths = np.hstack([decided, *_both(nodes, axes, paths[:, split])])
    found = np.hstack(done)
    found = found[:, np.argsort(found[0], kind="stable")]
    return Leaves(found[0], found[1], found[2 : 2 + s], found[2 + s :])


def _begun(table: Table, axes: Axes, n: int) -> NDArray[np.int64]:
    """Return the paths at the roots: every tree for every record."""
    t, s = len(table.roots), len(axes.cuts)
    paths = np.zeros((2 + 2 * s, n * t), dtype=np.int64)
    paths[0], paths[1] = np.repeat(np.arange(n), t), np.tile(table.roots, n)
    paths[2 + s :] = axes.ends[:, None]
    return paths


def _followed(
    nodes: Nodes, seen: FloatArray, paths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the next node where the record's own value decides."""
    at = paths[1]
    value = seen[paths[0], nodes.feature[at]]
    goes = value <= nodes.threshold[at]
    named = np.flatnonzero(nodes.category[at] >= 0)
    if len(named):
        goes[named] = _in_bits(nodes, at[named], value[named])
    goes = np.where(np.isnan(value), nodes.gap_left[at], goes)
    return np.asarray(np.where(goes, nodes.left[at], nodes.right[at]))


def _in_bits(
    nodes: Nodes, at: NDArray[np.int64], value: FloatArray
) -> NDArray[np.bool_]:
    code = np.nan_to_num(value).astype(np.int64)
    word = nodes.bits[nodes.category[at], code // 32]
    return np.asarray((word >> (code % 32).astype(np.uint32)) & 1 == 1)


def _both(
    nodes: Nodes, axes: Axes, paths: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Return the paths on both sides of sensitive splits, those with cells left."""
    s, at = len(axes.cuts), paths[1]
    low, high = 2 + axes.place[at], 2 + s + axes.place[at]
    middle, every = axes.rank[at] + 1, np.arange(len(at))
    lefts = np.flatnonzero(paths[low, every] < middle)
    rights = np.flatnonzero(paths[high, every] > middle)
    left, right = paths[:, lefts], paths[:, rights]
    left[1], right[1] = nodes.left[at[lefts]], nodes.right[at[rights]]
    ends, starts = (
        (high[lefts], every[: len(lefts)]),
        (low[rights], every[: len(rights)]),
    )
    left[ends] = np.minimum(left[ends], middle[lefts])
    right[starts] = np.maximum(right[starts], middle[rights])
    return [left, right]
