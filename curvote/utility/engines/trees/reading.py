"""The estimators that are ensembles of trees, each read into a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.utility.engines.trees.table import Nodes, Table, joined, of_tree
from curvote.validate import FloatArray


def table(model: Any) -> Table | str:
    """Return the estimator's table, or why it cannot be read as one."""
    reader = READERS.get(type(model).__name__)
    if reader is None or not type(model).__module__.startswith("sklearn."):
        return f"{type(model).__name__} is no ensemble of trees that is known here."
    if np.ndim(model.classes_) != 1 or isinstance(model.classes_, list):
        return "The trees answer several questions at once."
    return (
        reader(model) if len(model.classes_) > 1 else "The trees know one class only."
    )


def _votes(choice: NDArray[np.int64], k: int, weight: float = 1.0) -> FloatArray:
    """Return ``weight`` for each node's choice of k classes; two are one signed sum."""
    if k == 2:
        return np.where(choice == 1, weight, -weight)[:, None]
    return np.where(choice[:, None] == np.arange(k), weight, 0.0)


def _start(value: FloatArray) -> FloatArray:
    return np.zeros(value.shape[1])


def _tree(model: Any) -> Table:
    choice = np.argmax(model.tree_.value[:, 0], axis=1)
    votes = _votes(choice, len(model.classes_))
    nodes, roots = joined([of_tree(model.tree_, votes)])
    return Table(nodes, roots, _start(votes), _rule(votes))


def _rule(value: FloatArray) -> Any:
    return "positive" if value.shape[1] == 1 else "largest"


def _forest(model: Any) -> Table:
    """Sums of shares; of two classes their difference, positive for the second."""
    trees = [each.tree_ for each in model.estimators_]
    nodes, roots = joined([of_tree(tree, _shares(tree)) for tree in trees])
    start, rule = _start(nodes.value), _rule(nodes.value)
    return Table(nodes, roots, start, rule, rounded=any(map(_rounded, trees)))


def _rounded(tree: Any) -> bool:
    """Say whether two shares of a leaf do not add up to 1: their difference may lie.

    Where they do, a difference of few bits has shares of few bits.
    """
    leaves = tree.value[tree.children_left < 0, 0]
    return leaves.shape[1] == 2 and bool((leaves.sum(axis=1) != 1).any())


def _shares(tree: Any) -> FloatArray:
    value = np.asarray(tree.value[:, 0], dtype=np.float64)
    return np.diff(value, axis=1) if value.shape[1] == 2 else value


def _ada(model: Any) -> Table | str:
    trees = model.estimators_
    if any(type(tree).__name__ != "DecisionTreeClassifier" for tree in trees):
        return "What AdaBoost boosts here are no decision trees."
    k, weights = len(model.classes_), model.estimator_weights_
    nodes, roots = joined(
        [
            of_tree(tree.tree_, _votes(_choice(model, tree), k, float(weight)))
            for tree, weight in zip(trees, weights, strict=False)
        ]
    )
    return Table(nodes, roots, _start(nodes.value), _rule(nodes.value))


def _choice(model: Any, tree: Any) -> NDArray[np.int64]:
    named = tree.classes_[np.argmax(tree.tree_.value[:, 0], axis=1)]
    return np.asarray(np.searchsorted(model.classes_, named))


def _boosting(model: Any) -> Table | str:
    """The sum of two classes is >= 0 for the second, as scikit-learn compares it."""
    if isinstance(model.init_, str) or type(model.init_).__name__ == "DummyClassifier":
        if getattr(model.init_, "strategy", "prior") == "stratified":
            return "The first guess of the boosting is drawn."
        return _boosted(model)
    return "The first guess of the boosting is a model of its own, not a constant."


def _boosted(model: Any) -> Table:
    width = model.estimators_.shape[1]
    trees = [
        of_tree(each.tree_, _on(k, width, model.learning_rate * each.tree_.value[:, 0]))
        for row in model.estimators_
        for k, each in enumerate(row)
    ]
    # The library has no public way to the constant that its sums begin with.
    anything = np.zeros((1, model.n_features_in_), dtype=np.float32)
    start = model._raw_predict_init(anything)[0]  # noqa: SLF001
    return Table(*joined(trees), start, "not_negative" if width == 1 else "largest")


def _on(k: int, width: int, value: FloatArray) -> FloatArray:
    """Return values (N, 1) as those of sum k of ``width``."""
    return np.where(np.arange(width) == k, value, 0.0)


def _histograms(model: Any) -> Table | str:
    # The library shows its trees nowhere in public.
    rounds, start = model._predictors, model._baseline_prediction[0]  # noqa: SLF001
    trees = [
        _binned(predictor, k, len(start))
        for row in rounds
        for k, predictor in enumerate(row)
    ]
    nodes, roots = joined(trees)
    rule = _rule(nodes.value)
    if model.is_categorical_ is None:
        return Table(nodes, roots, start, rule, single=False)
    order = np.argsort(~model.is_categorical_, kind="stable")
    read = model._preprocessor.transform  # noqa: SLF001  (categories as numbers)
    return Table(nodes, roots, start, rule, False, False, order, read)


def _binned(predictor: Any, k: int, width: int) -> Nodes:
    nodes = predictor.nodes
    inner = nodes["is_leaf"] == 0
    value = np.where(inner, 0.0, nodes["value"])[:, None]
    named = inner & (nodes["is_categorical"] == 1)
    return Nodes(
        nodes["feature_idx"].astype(np.int64),
        nodes["num_threshold"].astype(np.float64),
        np.where(inner, nodes["left"].astype(np.int64), -1),
        np.where(inner, nodes["right"].astype(np.int64), -1),
        nodes["missing_go_to_left"] == 1,
        _on(k, width, value),
        np.where(named, nodes["bitset_idx"].astype(np.int64), -1),
        np.asarray(predictor.raw_left_cat_bitsets).reshape(-1, 8),
    )


READERS: dict[str, Callable[[Any], Table | str]] = {
    "DecisionTreeClassifier": _tree,
    "ExtraTreeClassifier": _tree,
    "RandomForestClassifier": _forest,
    "ExtraTreesClassifier": _forest,
    "AdaBoostClassifier": _ada,
    "GradientBoostingClassifier": _boosting,
    "HistGradientBoostingClassifier": _histograms,
}
