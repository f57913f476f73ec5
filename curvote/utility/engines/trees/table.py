"""Ensembles of trees as one table of nodes, whatever the estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from curvote.validate import FloatArray

# How sums of leaves become an answer: the sign of one sum (at 0 the first class, or the
# second), or the first of the largest sums.
Rule = Literal["positive", "not_negative", "largest"]

NO_BITS: NDArray[np.uint32] = np.zeros((0, 8), dtype=np.uint32)


@dataclass(frozen=True)
class Nodes:
    """Nodes of some trees; a leaf has ``left_child`` -1.

    A number goes left where it is <= ``threshold``, a gap where ``gap_left``. Where
    ``category`` is not -1, a whole number goes left if its bit in that row of ``bits``
    is set. ``value`` (N, C) is what a leaf adds to each of C sums.
    """

    feature: NDArray[np.int64]
    threshold: FloatArray
    left_child: NDArray[np.int64]
    right_child: NDArray[np.int64]
    gap_left: NDArray[np.bool_]
    value: FloatArray
    category: NDArray[np.int64]
    bits: NDArray[np.uint32] = field(default_factory=NO_BITS.copy)


@dataclass(frozen=True)
class TreeTable:
    """Trees of an ensemble: ``nodes``, the trees' ``roots`` (T,), the ``rule``.

    Sums begin at ``start`` (C,). With ``single`` values are compared as float32.
    ``rounded`` says that the model adds other numbers than these, rounded ones.
    ``read`` makes of features what the trees see, in the order of ``columns``; without
    it they see the features as they are.
    """

    nodes: Nodes
    roots: NDArray[np.int64]
    start: FloatArray
    rule: Rule
    single: bool = True
    rounded: bool = False
    columns: NDArray[np.int64] | None = None
    read: Callable[[FloatArray], FloatArray] | None = None

    def compared_values(self, features: FloatArray) -> FloatArray:
        """Return features (n, D) as the trees compare them."""
        values = features if self.read is None else np.asarray(self.read(features))
        return values.astype(np.float32).astype(np.float64) if self.single else values

    @property
    def column(self) -> NDArray[np.int64]:
        """Column of the features at which each node looks, -1 for a leaf, (N,)."""
        at = self.nodes.feature
        columns = at if self.columns is None else self.columns[at]
        return np.where(self.nodes.left_child < 0, -1, columns)

    def largest_sum(self) -> float:
        """Return a bound on the size of every sum."""
        sizes = np.maximum.reduceat(np.abs(self.nodes.value).max(axis=1), self.roots)
        return float(sizes.sum() + np.abs(self.start).max())


def join_trees(trees: Sequence[Nodes]) -> tuple[Nodes, NDArray[np.int64]]:
    """Return the nodes of all trees, and the index of each tree's root."""
    sizes = np.array([len(tree.left_child) for tree in trees])
    roots = np.cumsum(sizes) - sizes
    rows = np.array([len(tree.bits) for tree in trees])
    shifted = zip(trees, roots, np.cumsum(rows) - rows, strict=True)
    moved = [_shift_tree(tree, root, row) for tree, root, row in shifted]
    columns = {
        name: np.concatenate([getattr(tree, name) for tree in moved])
        for name in Nodes.__dataclass_fields__
    }
    return Nodes(**columns), roots


def _shift_tree(tree: Nodes, root: int, row: int) -> Nodes:
    """Return a tree whose nodes are numbered from ``root``, its bits from ``row``."""
    inner = tree.left_child >= 0
    return Nodes(
        tree.feature,
        tree.threshold,
        np.where(inner, tree.left_child + root, -1),
        np.where(inner, tree.right_child + root, -1),
        tree.gap_left,
        tree.value,
        np.where(tree.category >= 0, tree.category + row, -1),
        tree.bits,
    )


def nodes_of_tree(tree: Any, value: FloatArray) -> Nodes:
    """Return the nodes of scikit-learn's ``tree_``, its leaves worth ``value``."""
    left_child = np.asarray(tree.children_left, dtype=np.int64)
    return Nodes(
        np.asarray(tree.feature, dtype=np.int64),
        np.asarray(tree.threshold, dtype=np.float64),
        left_child,
        np.asarray(tree.children_right, dtype=np.int64),
        np.asarray(tree.missing_go_to_left, dtype=bool),
        np.where(left_child[:, None] < 0, value, 0.0),
        np.full(len(left_child), -1),
    )
