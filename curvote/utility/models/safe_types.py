"""What a model file may hold: plain data, and nothing that runs code or memory over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError

# Beyond what skops itself knows. By name and never by module: a whole module also holds
# what it imports. The two kinds of trees are looked through once they are loaded.
KNOWN_SAFE: Final = (
    "curvote.curve_classifier.CurveClassifier",
    "curvote.datasets.own.raw_records.RawRecords",
    "curvote.protocols.transfer.kept.TransferClassifier",
    "curvote.protocols.utility.kept.RecordClassifier",
    "numpy.dtype",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels.ConstantKernel",
    "sklearn.gaussian_process.kernels.Matern",
    "sklearn.gaussian_process.kernels.Product",
    "sklearn.gaussian_process.kernels.RBF",
    "sklearn.gaussian_process.kernels.Sum",
    "sklearn.gaussian_process.kernels.WhiteKernel",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
)


def check_trees(model: Any) -> None:
    """Refuse (UserError) trees whose nodes lead out of the tree, or in a circle.

    scikit-learn follows such a node without looking, into whatever memory is there.
    """
    for tree, width, categorical in _trees(model, None, None, set()):
        if not _sound(tree, width, categorical):
            raise UserError(
                "the model holds a tree whose nodes lead nowhere: the file is damaged,"
                " or made to do harm. Nothing was asked of it; get the model again from"
                " whoever fitted it."
            )


def _trees(
    found: Any, width: int | None, categorical: Any, seen: set[int]
) -> Iterator[tuple[Any, int | None, Any]]:
    """Yield each tree in a model, with what its columns are said to be."""
    if id(found) in seen:
        return
    seen.add(id(found))
    if type(found).__name__ in {"Tree", "TreePredictor"}:
        yield found, width, categorical
        return
    if _reads_columns(found):
        own = int(getattr(found, "n_features_in_", 0))
        width = own if width is None else min(own, width)
        mapper = getattr(found, "_bin_mapper", None)
        categorical = getattr(mapper, "is_categorical_", categorical)
    elif hasattr(found, "predict") or hasattr(found, "transform"):
        width = categorical = None
    for part in _parts(found):
        yield from _trees(part, width, categorical, seen)


def _reads_columns(found: Any) -> bool:
    """Say whether an estimator hands its own columns to its trees as they are."""
    from sklearn.ensemble._forest import BaseForest
    from sklearn.ensemble._gb import BaseGradientBoosting
    from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
        BaseHistGradientBoosting,
    )
    from sklearn.tree import BaseDecisionTree

    boosting = BaseGradientBoosting | BaseHistGradientBoosting
    return isinstance(found, BaseDecisionTree | BaseForest | boosting)


def _parts(found: Any) -> list[Any]:
    if isinstance(found, dict):
        return list(found.values())
    if isinstance(found, list | tuple | set):
        return list(found)
    if isinstance(found, np.ndarray):
        return list(found.flat) if found.dtype == object else []
    return list(getattr(found, "__dict__", {}).values())


def _sound(tree: Any, width: int | None, categorical: Any) -> bool:
    """Say whether every node that splits leads on, by a column that there is."""
    old = type(tree).__name__ == "Tree"
    nodes = tree.__getstate__()["nodes"] if old else tree.nodes
    names = ("left_child", "right_child", "feature")
    left, right, column = (
        nodes[name].astype(np.int64)
        for name in (names if old else ("left", "right", "feature_idx"))
    )
    splits = left != -1 if old else nodes["is_leaf"] == 0
    places = np.arange(len(nodes))
    inside = [(each > places) & (each < len(nodes)) for each in (left, right)]
    known = (column >= 0) & (column < (width or 0))
    sound = inside[0] & inside[1] & known
    held = bool((sound | ~splits).all() and len(nodes))
    return held and (old or _categories_known(tree, nodes, categorical))


def _categories_known(
    tree: Any, nodes: NDArray[Any], categorical: NDArray[np.bool_] | None
) -> bool:
    """Say whether the splits by category are of such columns, with a set for each."""
    asked = nodes[(nodes["is_leaf"] == 0) & (nodes["is_categorical"] != 0)]
    if not len(asked):
        return True
    if categorical is None:
        return False
    own = np.asarray(categorical)[asked["feature_idx"].astype(np.int64)]
    return bool(
        own.all() and asked["bitset_idx"].max() < len(tree.raw_left_cat_bitsets)
    )
