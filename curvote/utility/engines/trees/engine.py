"""Engine of trees and their ensembles: exact, where the cells fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.utility.engines.asking import class_indices, predict_batched
from curvote.utility.engines.base import Engine, Question, Surface
from curvote.utility.engines.fronts import Front, split_front
from curvote.utility.engines.trees import building, surface
from curvote.utility.engines.trees.axes import Axes, make_axes, why_not_axes
from curvote.utility.engines.trees.reading import read_table
from curvote.utility.engines.trees.sums import whole_units
from curvote.utility.engines.trees.table import TreeTable
from curvote.validate import FloatArray

# Cells of all records, some minutes; and bytes of the sums that are held at once, those
# of the cells beside one cell of the first axis.
MOST_CELLS = 1 << 34
MOST_BYTES = 1 << 27


class Trees(Engine):
    """Engine of decision trees, forests and boosted trees of scikit-learn."""

    name = "trees"

    def refusal(self, question: Question) -> str | None:
        """Return why the cells cannot be made, or None."""
        trees = read_trees(question)
        return trees if isinstance(trees, str) else _too_many_cells(question, *trees)

    def surface(self, question: Question) -> Surface:
        """Return the boxes of one answer around each record; UserError if refused."""
        trees_found = read_trees(question)
        if isinstance(trees_found, str):
            raise UserError(trees_found)
        front, trees, cuts = trees_found
        features = front.features(question.records)
        boxes, query_counts = building.build_boxes(question, trees, cuts, features)
        classes = np.asarray(question.model.classes_)
        clean = class_indices(
            classes, predict_batched(question.model, question.records)
        )
        used_cuts, boxes = surface.prune_cuts(cuts.cuts, boxes)
        return surface.TreeSurface(
            clean, len(classes), question, used_cuts, boxes, query_counts
        )

    def restored(self, question: Question, arrays: dict[str, NDArray[Any]]) -> Surface:
        """Return the surface built again from its ``arrays``."""
        return surface.restore_trees(question, arrays)


def cell_counts(question: Question) -> FloatArray:
    """Return the number of cells of each record of trees, (n,).

    UserError where the model cannot be read as trees.
    """
    trees_found = read_trees(question)
    if isinstance(trees_found, str):
        raise UserError(trees_found)
    front, trees, cuts = trees_found
    shape = building.count_cells(trees, cuts, front.features(question.records))
    return np.asarray(np.prod(shape, axis=1, dtype=np.float64))


def read_trees(question: Question) -> tuple[Front, TreeTable, Axes] | str:
    """Return front, table of trees and their cuts, or why they cannot be read."""
    estimator, front = split_front(question)
    trees = read_table(estimator)
    if isinstance(trees, str):
        return trees
    if isinstance(front, str):
        return front
    why = why_not_axes(question, front, trees)
    return (front, trees, make_axes(question, front, trees)) if why is None else why


def _too_many_cells(
    question: Question, front: Front, trees: TreeTable, cuts: Axes
) -> str | None:
    """Return why the cells would not fit, or None.

    They are counted only where as many as there are cuts of all trees would not fit.
    """
    n, line = len(question.records), MOST_BYTES // whole_units(trees).start.nbytes
    if _cells_fit(np.tile(cuts.ends, (n, 1)), line):
        return None
    shape = building.count_cells(trees, cuts, front.features(question.records))
    if _cells_fit(shape, line):
        return None
    count = np.prod(shape, axis=1, dtype=np.float64)
    return (
        f"The trees cut the sensitive features into {count.sum():.3g} cells around"
        f" {n} records, {count.max():.3g} around one; at most {MOST_CELLS:.3g} are"
        " made, and"
        f" {line:.3g} at once. Branch and bound or draws take their place."
    )


def _cells_fit(shape: NDArray[np.int64], line: float) -> bool:
    """Return whether cells of this shape fit."""
    sides = shape.astype(np.float64)
    return bool(
        sides.prod(axis=1).sum() <= MOST_CELLS
        and sides[:, 1:].prod(axis=1).max() <= line
    )
