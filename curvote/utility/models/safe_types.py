"""What a model file may hold: plain data, and nothing that runs code or memory over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError

# Beyond what skops itself knows. By name and never by module: a whole module also holds
# what it imports. What compiled code of scikit-learn reads without looking is looked
# through once it is loaded (`check_memory`); trees and splines of other makes
# (KDTree, BallTree, BSpline) are not among them and are refused.
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


def check_memory(model: Any) -> None:
    """Refuse (UserError) what leads scikit-learn's compiled code out of its arrays.

    It follows a tree's node, a support vector's place or a label's number without
    looking, into whatever memory is there.
    """
    for tree, width, categorical in _trees(model, None, None, set()):
        if not _sound(tree, width, categorical):
            raise _harmful("a tree whose nodes lead nowhere")
    for part in _estimators(model, set()):
        for kind, sound, words in _checks():
            if isinstance(part, kind) and not _holds(sound, part):
                raise _harmful(words)


def _harmful(what: str) -> UserError:
    return UserError(
        f"the model holds {what}: the file is damaged, or made to do harm. Nothing was"
        " asked of it; get the model again from whoever fitted it."
    )


def _holds(sound: Callable[[Any], bool], part: Any) -> bool:
    """Say whether a part is sound; one that lacks what is looked at is not."""
    try:
        return sound(part)
    except Exception:  # noqa: BLE001 - attributes may be of any type
        return False


def _estimators(found: Any, seen: set[int]) -> Iterator[Any]:
    """Yield all that a model is made of."""
    if id(found) not in seen:
        seen.add(id(found))
        yield found
        for part in _parts(found):
            yield from _estimators(part, seen)


def _checks() -> list[tuple[Any, Callable[[Any], bool], str]]:
    from sklearn.cluster._kmeans import _BaseKMeans
    from sklearn.ensemble._gb import BaseGradientBoosting
    from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
    from sklearn.neighbors._base import NeighborsBase
    from sklearn.svm._base import BaseLibSVM

    return [
        (BaseLibSVM, _vectors_fit, "support vectors that do not fit each other"),
        (BaseGradientBoosting, _stages_fit, "more trees in a stage than classes"),
        (_BinMapper, _categories_fit, "categories that no column can have"),
        (NeighborsBase, _labels_fit, "labels of neighbours that are no classes"),
        (_BaseKMeans, _centres_fit, "centres of another width than its records"),
    ]


def _vectors_fit(svm: Any) -> bool:
    """Say whether the arrays of libsvm's model have the lengths that it reads.

    A sparse one is refused: its matrices are of a type that is not loaded.
    """
    if not hasattr(svm, "support_"):
        return True  # not fitted: nothing is read
    own, known = np.asarray(svm._n_support), np.asarray(svm.support_)  # noqa: SLF001
    n, each, classes = len(known), len(own), getattr(svm, "classes_", None)
    if classes is None:  # regression, or one class
        rows, offsets, summed = 1, 1, bool((own <= n).all())
    else:
        rows, offsets = each - 1, each * (each - 1) // 2
        summed = bool(own.sum() == n and len(classes) == each)
    vectors = svm.support_vectors_.shape == (n, svm.n_features_in_)
    if svm.kernel == "precomputed":
        wide = svm.shape_fit_[0] == svm.n_features_in_
        vectors = wide and bool(((known >= 0) & (known < svm.shape_fit_[0])).all())
    inner = svm._dual_coef_, svm._intercept_, svm._probA, svm._probB  # noqa: SLF001
    dual, shift, *probabilities = inner
    return bool(
        each >= 2
        and (own >= 0).all()
        and summed
        and vectors
        and not svm._sparse  # noqa: SLF001
        and svm.dual_coef_.shape == dual.shape == (rows, n)
        and svm.intercept_.shape == shift.shape == (offsets,)
        and {len(p) for p in probabilities} in ({0}, {each * (each - 1) // 2})
    )


def _stages_fit(boosting: Any) -> bool:
    trees = getattr(boosting, "estimators_", None)
    if trees is None:
        return True
    single = all(t.tree_.n_outputs == t.tree_.max_n_classes == 1 for t in trees.flat)
    return bool(single and trees.shape[1] == boosting.n_trees_per_iteration_)


def _categories_fit(bins: Any) -> bool:
    """Say whether raw categories are of the 256 for which a column has room."""
    known = getattr(bins, "is_categorical_", None)
    if known is None:
        return True
    asked = [np.asarray(bins.bin_thresholds_[i]) for i in np.flatnonzero(known)]
    return all(bool(((each >= 0) & (each < 256)).all()) for each in asked)


def _labels_fit(near: Any) -> bool:
    labels, classes = getattr(near, "_y", None), getattr(near, "classes_", None)
    if labels is None or classes is None:
        return True
    columns = np.asarray(labels).reshape(len(labels), -1).T
    every = classes if isinstance(classes, list) else [classes]
    inside = (
        bool(((each >= 0) & (each < len(own))).all())
        for each, own in zip(columns, every, strict=True)
    )
    return len(labels) == near.n_samples_fit_ == near._fit_X.shape[0] and all(inside)  # noqa: SLF001


def _centres_fit(means: Any) -> bool:
    centres = getattr(means, "cluster_centers_", None)
    return centres is None or centres.shape[1] == means.n_features_in_


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
    if isinstance(found, type):
        return []
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
