"""The engine of trees and their ensembles: exact, where the cells fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.utility.engines.asking import placed, told
from curvote.utility.engines.base import Engine, Question, Surface
from curvote.utility.engines.fronts import Front, undone
from curvote.utility.engines.trees import building, surface
from curvote.utility.engines.trees.axes import Axes, axes, obstacle
from curvote.utility.engines.trees.reading import table
from curvote.utility.engines.trees.sums import units
from curvote.utility.engines.trees.table import Table
from curvote.validate import FloatArray

# Cells of all records, some minutes; and bytes of the sums that are held at once, those
# of the cells beside one cell of the first axis.
MOST = 1 << 34
MOST_AT_ONCE = 1 << 27


class Trees(Engine):
    """Decision trees, forests and boosted trees of scikit-learn, any classes."""

    name = "trees"

    def refusal(self, question: Question) -> str | None:
        """Return why the cells cannot be made, with their number if it is that."""
        found = read(question)
        return found if isinstance(found, str) else _too_many(question, *found)

    def surface(self, question: Question) -> Surface:
        """Return the boxes of one answer around each record; UserError if refused."""
        found = read(question)
        if isinstance(found, str):
            raise UserError(found)
        front, trees, cuts = found
        features = front.features(question.records)
        boxes, asked = building.boxes(question, trees, cuts, features)
        classes = np.asarray(question.model.classes_)
        clean = placed(classes, told(question.model, question.records))
        kept, boxes = surface.pruned(cuts.cuts, boxes)
        return surface.Cells(clean, len(classes), question, kept, boxes, asked)

    def restored(self, question: Question, arrays: dict[str, NDArray[Any]]) -> Surface:
        """Return the surface whose ``arrays`` are given."""
        return surface.restored(question, arrays)


def cells(question: Question) -> FloatArray:
    """Return how many cells each record of trees would have, (n,); none is made.

    UserError where the model cannot be read as trees.
    """
    found = read(question)
    if isinstance(found, str):
        raise UserError(found)
    front, trees, cuts = found
    shape = building.counted(trees, cuts, front.features(question.records))
    return np.asarray(np.prod(shape, axis=1, dtype=np.float64))


def read(question: Question) -> tuple[Front, Table, Axes] | str:
    """Return what stands before the trees, they, and their cuts, or why not."""
    estimator, front = undone(question)
    trees = table(estimator)
    if isinstance(trees, str):
        return trees
    if isinstance(front, str):
        return front
    why = obstacle(question, front, trees)
    return (front, trees, axes(question, front, trees)) if why is None else why


def _too_many(question: Question, front: Front, trees: Table, cuts: Axes) -> str | None:
    """Return why the cells would not fit, or None.

    They are counted only where as many as there are cuts of all trees would not fit.
    """
    n, line = len(question.records), MOST_AT_ONCE // units(trees).start.nbytes
    if _fits(np.tile(cuts.ends, (n, 1)), line):
        return None
    shape = building.counted(trees, cuts, front.features(question.records))
    if _fits(shape, line):
        return None
    count = np.prod(shape, axis=1, dtype=np.float64)
    return (
        f"The trees cut the sensitive features into {count.sum():.3g} cells around"
        f" {n} records, {count.max():.3g} around one; at most {MOST:.3g} are made, and"
        f" {line:.3g} at once. Branch and bound or draws take their place."
    )


def _fits(shape: NDArray[np.int64], line: float) -> bool:
    sides = shape.astype(np.float64)
    return bool(
        sides.prod(axis=1).sum() <= MOST and sides[:, 1:].prod(axis=1).max() <= line
    )
