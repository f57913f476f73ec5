"""Safety checks of a model file: plain data, nothing that overruns memory."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile, ZipFile

import numpy as np

from curvote.base.errors import UserError
from curvote.base.warning_filters import FILTERS

# Beyond what skops itself knows. By name and never by module: a whole module also holds
# what it imports. What compiled code of scikit-learn reads without looking is looked
# through once it is loaded (`check_memory`); trees and splines of other makes
# (KDTree, BallTree, BSpline) are not among them and are refused.
KNOWN_SAFE: Final = (
    "curvote.curves.curve_classifier.CurveClassifier",
    "curvote.data.tables.records.RawRecords",
    "curvote.systems.transfer.model.TransferClassifier",
    "curvote.systems.utility.model.RecordClassifier",
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
    """Refuse a model that leads compiled code of scikit-learn out of its arrays.

    It follows a tree's node, a support vector's place or a label's number without
    looking, into whatever memory is there.
    """
    parts = list(_iterate_parts(model, None, None, set()))
    for part, width, categorical in parts:
        tree = type(part).__name__ in {"Tree", "TreePredictor"}
        if tree and not _tree_is_sound(part, width, categorical):
            raise _harmful_error("a tree whose nodes lead nowhere")
    from sklearn.cluster._kmeans import _BaseKMeans
    from sklearn.ensemble._gb import BaseGradientBoosting
    from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
    from sklearn.neighbors._base import NeighborsBase
    from sklearn.svm._base import BaseLibSVM

    checks = [
        (BaseLibSVM, _vectors_fit, "support vectors that do not fit each other"),
        (BaseGradientBoosting, _stages_fit, "more trees in a stage than classes"),
        (_BinMapper, _categories_fit, "categories that no column can have"),
        (NeighborsBase, _labels_fit, "labels of neighbours that are no classes"),
        (_BaseKMeans, _centres_fit, "centres of another width than its records"),
    ]
    for part, _, _ in parts:
        for kind, sound, description in checks:
            if isinstance(part, kind):
                try:
                    passed = sound(part)
                except Exception:  # noqa: BLE001 - attributes may be of any type
                    passed = False
                if not passed:
                    raise _harmful_error(description)


def _harmful_error(what: str) -> UserError:
    return UserError(
        f"the model holds {what}: the file is damaged, or made to do harm. Nothing was"
        " asked of it; get the model again from whoever fitted it."
    )


def _vectors_fit(svm: Any) -> bool:
    """Return whether the arrays of a libsvm model fit each other.

    A sparse one is refused: its matrices are of a type that is not loaded.
    """
    if not hasattr(svm, "support_"):
        return True  # not fitted: nothing is read
    counts, support = np.asarray(svm._n_support), np.asarray(svm.support_)  # noqa: SLF001
    n, class_count, classes = len(support), len(counts), getattr(svm, "classes_", None)
    if classes is None:  # regression, or one class
        rows, offsets, summed = 1, 1, bool((counts <= n).all())
    else:
        rows, offsets = class_count - 1, class_count * (class_count - 1) // 2
        summed = bool(counts.sum() == n and len(classes) == class_count)
    vectors = svm.support_vectors_.shape == (n, svm.n_features_in_)
    if svm.kernel == "precomputed":
        wide = svm.shape_fit_[0] == svm.n_features_in_
        vectors = wide and bool(((support >= 0) & (support < svm.shape_fit_[0])).all())
    inner = svm._dual_coef_, svm._intercept_, svm._probA, svm._probB  # noqa: SLF001
    dual, shift, *probabilities = inner
    return bool(
        class_count >= 2
        and (counts >= 0).all()
        and summed
        and vectors
        and not svm._sparse  # noqa: SLF001
        and svm.dual_coef_.shape == dual.shape == (rows, n)
        and svm.intercept_.shape == shift.shape == (offsets,)
        and {len(p) for p in probabilities}
        in ({0}, {class_count * (class_count - 1) // 2})
    )


def _stages_fit(boosting: Any) -> bool:
    trees = getattr(boosting, "estimators_", None)
    if trees is None:
        return True
    single = all(t.tree_.n_outputs == t.tree_.max_n_classes == 1 for t in trees.flat)
    return bool(single and trees.shape[1] == boosting.n_trees_per_iteration_)


def _categories_fit(bins: Any) -> bool:
    """Return whether raw categories are of the 256 that a column can have."""
    categorical = getattr(bins, "is_categorical_", None)
    if categorical is None:
        return True
    columns = np.flatnonzero(categorical)
    thresholds = (np.asarray(bins.bin_thresholds_[column]) for column in columns)
    return all(bool(((values >= 0) & (values < 256)).all()) for values in thresholds)


def _labels_fit(near: Any) -> bool:
    labels, classes = getattr(near, "_y", None), getattr(near, "classes_", None)
    if labels is None or classes is None:
        return True
    columns = np.asarray(labels).reshape(len(labels), -1).T
    every = classes if isinstance(classes, list) else [classes]
    inside = (
        bool(((column >= 0) & (column < len(column_classes))).all())
        for column, column_classes in zip(columns, every, strict=True)
    )
    return len(labels) == near.n_samples_fit_ == near._fit_X.shape[0] and all(inside)  # noqa: SLF001


def _centres_fit(means: Any) -> bool:
    centres = getattr(means, "cluster_centers_", None)
    return centres is None or centres.shape[1] == means.n_features_in_


def _iterate_parts(
    owner: Any, width: int | None, categorical: Any, visited: set[int]
) -> Iterator[tuple[Any, int | None, Any]]:
    """Yield all parts of a model, each once, with width and kinds of its columns."""
    from sklearn.ensemble._forest import BaseForest
    from sklearn.ensemble._gb import BaseGradientBoosting
    from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
        BaseHistGradientBoosting,
    )
    from sklearn.tree import BaseDecisionTree

    if id(owner) in visited:
        return
    visited.add(id(owner))
    yield owner, width, categorical
    boosting = BaseGradientBoosting | BaseHistGradientBoosting
    if isinstance(owner, BaseDecisionTree | BaseForest | boosting):
        own_width = int(getattr(owner, "n_features_in_", 0))
        width = own_width if width is None else min(own_width, width)
        mapper = getattr(owner, "_bin_mapper", None)
        categorical = getattr(mapper, "is_categorical_", categorical)
    elif hasattr(owner, "predict") or hasattr(owner, "transform"):
        width = categorical = None
    for part in _direct_parts(owner):
        yield from _iterate_parts(part, width, categorical, visited)


def _direct_parts(part: Any) -> list[Any]:
    if isinstance(part, dict):
        return list(part.values())
    if isinstance(part, list | tuple | set):
        return list(part)
    if isinstance(part, np.ndarray):
        return list(part.flat) if part.dtype == object else []
    if isinstance(part, type):
        return []
    return list(getattr(part, "__dict__", {}).values())


def _tree_is_sound(tree: Any, width: int | None, categorical: Any) -> bool:
    """Return whether every splitting node leads on, by an existing column."""
    old = type(tree).__name__ == "Tree"
    nodes = tree.__getstate__()["nodes"] if old else tree.nodes
    names = ("left_child", "right_child", "feature")
    *children, column = (
        nodes[name].astype(np.int64)
        for name in (names if old else ("left", "right", "feature_idx"))
    )
    splits = children[0] != -1 if old else nodes["is_leaf"] == 0
    places = np.arange(len(nodes))
    sound = (column >= 0) & (column < (width or 0))
    for child in children:
        sound &= (child > places) & (child < len(nodes))
    if not ((sound | ~splits).all() and len(nodes)):
        return False
    if old:
        return True
    # The splits by category are of columns with categories.
    named = nodes[(nodes["is_leaf"] == 0) & (nodes["is_categorical"] != 0)]
    if not len(named) or categorical is None:
        return not len(named)
    flags = np.asarray(categorical)[named["feature_idx"].astype(np.int64)]
    return bool(
        flags.all() and named["bitset_idx"].max() < len(tree.raw_left_cat_bitsets)
    )


SKOPS: Final = ".skops"
PICKLES: Final = (".pkl", ".pickle", ".joblib")
SUFFIXES: Final = (SKOPS, *PICKLES)
# Numbers that were packed shrink to a fifth at best; a bomb, to a thousandth. Below
# LARGE bytes nobody minds.
MOST_UNPACKED: Final = 30
LARGE: Final = 2**25


@dataclass(frozen=True)
class LoadedModel:
    """Loaded model, with notes for its reader."""

    model: Any
    notes: tuple[str, ...] = ()


def load_model(path: Path, *, trusted: Path | None = None) -> LoadedModel:
    """Return the model in the file at ``path``.

    ``trusted`` names the one pickle that the caller trusts to run code. UserError: no
    such file, types that are not known to be safe (nothing is loaded), a pickle that
    is not named, or a file that is neither.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UserError(
            f"{path}: a model is a {SKOPS} file, as `skops.io.dump` writes."
        )
    if not path.is_file():
        raise UserError(f"{path}: there is no such file.")
    if trusted is not None and suffix == SKOPS:
        raise UserError(f"{path} is no pickle: leave out --trust-pickle.")
    if trusted is not None and trusted.resolve() != path.resolve():
        raise UserError(
            f"--trust-pickle names {trusted}, and the model is {path}; it trusts the"
            " one file that it names."
        )
    if suffix == SKOPS:
        return load_skops(path)
    if trusted is None:
        raise UserError(
            f"{path} is a pickle, and loading a pickle runs whatever code is in it:"
            f" nothing was loaded. If you trust whoever made it, convert it:\n"
            "  import joblib, skops.io\n"
            f'  skops.io.dump(joblib.load("{path}"), "{path.with_suffix(SKOPS)}")\n'
            f"or load it here by naming the very file: --trust-pickle {path}"
        )
    import joblib

    return _load_noted(str(path), lambda: joblib.load(path))


def load_skops(path: Path, display_name: str | None = None) -> LoadedModel:
    """Return the model of a skops file, which errors call by a display name."""
    import skops.io

    name = display_name or str(path)
    _read_or_refuse(name, lambda: _check_size(path))
    types = _read_or_refuse(name, lambda: skops.io.get_untrusted_types(file=path))
    unsafe = sorted(set(types) - set(KNOWN_SAFE))
    if unsafe:
        raise UserError(
            f"{name} holds types that are not known to be safe:"
            f" {', '.join(unsafe)}. Nothing was loaded. Where you trust its maker,"
            " load it in Python, `skops.io.load(path, trusted=[...])`, and ask"
            " `curvote.utility.quantify`."
        )
    trusted = list(KNOWN_SAFE)
    loaded = _load_noted(name, lambda: skops.io.load(path, trusted=trusted))
    check_memory(loaded.model)
    return loaded


def _check_size(path: Path) -> None:
    """Refuse an archive that unpacks to far more than it is, before any of it is."""
    with ZipFile(path) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    if size > max(LARGE, MOST_UNPACKED * path.stat().st_size):
        raise ValueError(
            f"it would unpack to {size / 1e6:.0f} MB, over {MOST_UNPACKED} times its"
            " own size"
        )


def _load_noted(name: str, read: Callable[[], Any]) -> LoadedModel:
    from sklearn.exceptions import InconsistentVersionWarning

    with FILTERS, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", InconsistentVersionWarning)
        model = _read_or_refuse(name, read)
    for warning in (caught_warning.message for caught_warning in caught):
        if isinstance(warning, InconsistentVersionWarning):
            fitted = warning.original_sklearn_version
            note = (
                f"{name} was fitted by scikit-learn {fitted}, here is"
                f" {warning.current_sklearn_version}: its answers may differ from those"
                " it gave there. Compare them on records that you know."
            )
            return LoadedModel(model, (note,))
    return LoadedModel(model)


def _read_or_refuse(name: str, read: Callable[[], Any]) -> Any:
    """Return the loader's result; any error of it is a UserError."""
    try:
        return read()
    except BadZipFile:
        raise UserError(f"{name} is no skops file (it is no archive at all).") from None
    except Exception as error:  # noqa: BLE001 - a loader's errors are of any kind
        words = f"{type(error).__name__}, {error}".strip().replace("\n", " ")
        raise UserError(f"{name} holds no model that loads here: {words}.") from None
