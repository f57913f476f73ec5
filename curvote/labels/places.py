"""Labels as their owners write them, and the places of their classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.errors import UserError, closest
from curvote.validate import shown

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
    own, given = _categories(y)
    if classes is None:
        known = classes_of(_occurring(given) if own is None else own)
    else:
        known = classes_of(classes)
    if own is None or classes is None:
        return known, _found(given, known) if own is None else given
    return known, _found(own[given], known)


def classes_of(classes: ArrayLike) -> NDArray[Any]:
    """Return classes, (K,), if there are two or more and all differ; else UserError."""
    known = column(classes, "classes")
    if len(known) < 2 or len(np.unique(known)) < len(known):
        raise UserError(
            f"the classes are {_listed(known)}; give two or more, all different."
        )
    return known


def _listed(known: NDArray[Any]) -> str:
    names = [shown(name) for name in known[:_NAMED].tolist()]
    return ", ".join([*names, *(["..."] if len(known) > _NAMED else [])]) or "none"


def _categories(y: Any) -> tuple[NDArray[Any] | None, NDArray[Any]]:
    """Return pandas categories and their places; or None and the labels."""
    held = getattr(y, "cat", y)
    if not (hasattr(held, "categories") and hasattr(held, "codes")):
        return None, column(y, "y")
    places = np.asarray(held.codes, dtype=np.int64)
    _refuse_missing(places < 0, "y")
    return column(held.categories, "classes"), places


def _occurring(given: NDArray[Any]) -> NDArray[Any]:
    if given.dtype.kind == "b":
        return np.array([False, True])
    found = np.unique(given)
    if len(found) < 2:
        only = f"one class only, {shown(found[0].item())}" if len(found) else "no label"
        raise UserError(f"y holds {only}; name two classes or more: give `classes`.")
    return found


def column(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return labels as one plain array (n,) of text, whole numbers or truth values."""
    import pandas as pd

    given = np.asarray(values)
    if given.ndim != 1:
        raise UserError(f"{name} has shape {given.shape}; give one label each: (n,).")
    _refuse_missing(np.asarray(pd.isna(given)), name)
    if given.dtype.kind == "O" or isinstance(values, list | tuple):
        given = _plain(given if given.dtype.kind == "O" else values, given, name)
    if given.dtype.kind not in "biufU" or not _whole(given):
        raise UserError(
            f"{name} holds {given.dtype} values; labels are text, whole numbers or"
            " truth values."
        )
    return given


def _plain(values: Any, given: NDArray[Any], name: str) -> NDArray[Any]:
    """Return objects as one plain array; text among numbers is a UserError."""
    text = [isinstance(value, str) for value in values]
    if any(text) and not all(text):
        raise UserError(f"{name} holds text and other values; give labels of one kind.")
    if given.dtype.kind != "O":
        return given
    return np.array(given.tolist()) if len(given) else given.astype(np.int64)


def _whole(given: NDArray[Any]) -> bool:
    whole = given.dtype.kind != "f" or np.isfinite(given) & (given == np.rint(given))
    return bool(np.all(whole))


def _refuse_missing(missing: NDArray[np.bool_], name: str) -> None:
    if missing.any():
        raise UserError(
            f"{name} holds {int(missing.sum())} missing labels, the first at index"
            f" {int(np.argmax(missing))}; leave such records out."
        )


def _found(given: NDArray[Any], known: NDArray[Any]) -> Labels:
    """Return the place of each label; one of no class is a UserError."""
    import pandas as pd

    found = pd.Index(known).get_indexer(pd.Index(given))
    wrong = np.flatnonzero(found < 0)
    if wrong.size:
        first = given[wrong[0]].item()
        names = known.tolist() if isinstance(first, str) else []
        hint = closest(first, map(str, names)) if names else ""
        raise UserError(
            f"y holds {wrong.size} labels of no class, the first is {shown(first)} at"
            f" index {int(wrong[0])}; the classes are {_listed(known)}.{hint}"
        )
    return np.asarray(found, dtype=np.int64)
