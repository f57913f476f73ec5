"""Classes of labels as their owners write them, and the place of each label's class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base.errors import UserError, suggest_closest
from curvote.base.validate import format_value

Labels = NDArray[np.int64]
# Classes that an error names.
_NAMED = 10


def places_of(
    y: ArrayLike, classes: ArrayLike | None = None
) -> tuple[NDArray[Any], Labels]:
    """Return the classes (K,) and the place of each label among them, (n,).

    Labels are text, whole numbers or truth values. Without ``classes`` those of pandas
    categories are taken, unused ones too, in their order; both truth values; else the
    labels that occur, sorted. UserError: a missing label, one of no class, fewer than
    two classes or one of them twice, and whatever is no list of labels.
    """
    categories, values = _split_categories(y)
    if classes is None:
        class_names = check_classes(
            _occurring_classes(values) if categories is None else categories
        )
    else:
        class_names = check_classes(classes)
    if categories is None or classes is None:
        return class_names, _find_places(
            values, class_names
        ) if categories is None else values
    return class_names, _find_places(categories[values], class_names)


def check_classes(classes: ArrayLike) -> NDArray[Any]:
    """Return classes, (K,), if there are two or more and all differ; else UserError."""
    class_names = label_array(classes, "classes")
    if len(class_names) < 2 or len(np.unique(class_names)) < len(class_names):
        raise UserError(
            f"the classes are {_list_classes(class_names)}; give two or more, all"
            " different."
        )
    return class_names


def _list_classes(classes: NDArray[Any]) -> str:
    names = [format_value(name) for name in classes[:_NAMED].tolist()]
    return ", ".join([*names, *(["..."] if len(classes) > _NAMED else [])]) or "none"


def _split_categories(y: Any) -> tuple[NDArray[Any] | None, NDArray[Any]]:
    """Return pandas categories and their places; or None and the labels."""
    categorical = getattr(y, "cat", y)
    if not (hasattr(categorical, "categories") and hasattr(categorical, "codes")):
        return None, label_array(y, "y")
    places = np.asarray(categorical.codes, dtype=np.int64)
    _refuse_missing(places < 0, "y")
    return label_array(categorical.categories, "classes"), places


def _occurring_classes(labels: NDArray[Any]) -> NDArray[Any]:
    if labels.dtype.kind == "b":
        return np.array([False, True])
    classes = np.unique(labels)
    if len(classes) < 2:
        only = (
            f"one class only, {format_value(classes[0].item())}"
            if len(classes)
            else "no label"
        )
        raise UserError(f"y holds {only}; name two classes or more: give `classes`.")
    return classes


def label_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return labels as one plain array (n,) of text, whole numbers or truth values."""
    import pandas as pd

    labels = np.asarray(values)
    if labels.ndim != 1:
        raise UserError(f"{name} has shape {labels.shape}; give one label each: (n,).")
    _refuse_missing(np.asarray(pd.isna(labels)), name)
    if labels.dtype.kind == "O" or isinstance(values, list | tuple):
        labels = _plain_array(
            labels if labels.dtype.kind == "O" else values, labels, name
        )
    if labels.dtype.kind not in "biufU" or not _are_whole(labels):
        raise UserError(
            f"{name} holds {labels.dtype} values; labels are text, whole numbers or"
            " truth values."
        )
    return labels


def _plain_array(values: Any, labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Return objects as one plain array; text among numbers is a UserError."""
    text = [isinstance(value, str) for value in values]
    if any(text) and not all(text):
        raise UserError(f"{name} holds text and other values; give labels of one kind.")
    if labels.dtype.kind != "O":
        return labels
    return np.array(labels.tolist()) if len(labels) else labels.astype(np.int64)


def _are_whole(labels: NDArray[Any]) -> bool:
    is_whole = labels.dtype.kind != "f" or np.isfinite(labels) & (
        labels == np.rint(labels)
    )
    return bool(np.all(is_whole))


def _refuse_missing(missing: NDArray[np.bool_], name: str) -> None:
    if missing.any():
        raise UserError(
            f"{name} holds {int(missing.sum())} missing labels, the first at index"
            f" {int(np.argmax(missing))}; leave such records out."
        )


def _find_places(labels: NDArray[Any], classes: NDArray[Any]) -> Labels:
    """Return the place of each label; one of no class is a UserError."""
    import pandas as pd

    places = pd.Index(classes).get_indexer(pd.Index(labels))
    wrong = np.flatnonzero(places < 0)
    if wrong.size:
        first = labels[wrong[0]].item()
        names = classes.tolist() if isinstance(first, str) else []
        hint = suggest_closest(first, map(str, names)) if names else ""
        raise UserError(
            f"y holds {wrong.size} labels of no class, the first is"
            f" {format_value(first)} at"
            f" index {int(wrong[0])}; the classes are {_list_classes(classes)}.{hint}"
        )
    return np.asarray(places, dtype=np.int64)
