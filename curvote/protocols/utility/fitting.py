"""Classifiers of scikit-learn by their path, as a pipeline names them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.validate import FloatArray

# Only code of these packages is run: a path is a text from a file.
KNOWN: Final = ("sklearn.",)


def made(spec: Mapping[str, Any], seed: int) -> Any:
    """Return the classifier of ``models``, not fitted; UserError where there is none.

    One that draws gets ``seed``, unless its parameters name one.
    """
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = _instance(spec["path"], spec["params"])
    if model.get_params().get("random_state", 0) is None:
        model.set_params(random_state=seed)
    scaled = spec["scale"] == "standard"
    return make_pipeline(StandardScaler(), model) if scaled else model


def _instance(path: str, params: Mapping[str, Any]) -> Any:
    from sklearn.base import is_classifier

    kind = _class(path)
    try:
        model = kind(**params)
    except TypeError as error:
        raise UserError(f"{path}: {error}.") from None
    if not is_classifier(model):
        raise UserError(f"{path} is no classifier.")
    return model


def _class(path: str) -> Any:
    module, _, name = path.rpartition(".")
    if not path.startswith(KNOWN):
        known = ", ".join(f"{package}..." for package in KNOWN)
        raise UserError(f"{path}: a model is named by its path, {known}")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise UserError(f"{path}: there is no such class.") from None


def fitted(
    spec: Mapping[str, Any], X: FloatArray, y: NDArray[np.int64], seed: int
) -> Any:
    """Return the classifier fitted on records (n, D) and places of classes (n,)."""
    return made(spec, seed).fit(X, y)
