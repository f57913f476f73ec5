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
ALLOWED_PACKAGES: Final = ("sklearn.",)


def make_classifier(spec: Mapping[str, Any], seed: int) -> Any:
    """Return the unfitted classifier of ``models``; without any a UserError.

    One that draws gets ``seed``, unless its parameters name one.
    """
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = _make_instance(spec["path"], spec["params"])
    if model.get_params().get("random_state", 0) is None:
        model.set_params(random_state=seed)
    scaled = spec["scale"] == "standard"
    return make_pipeline(StandardScaler(), model) if scaled else model


def _make_instance(path: str, params: Mapping[str, Any]) -> Any:
    """Return the classifier at a path; anything else is a UserError."""
    from sklearn.base import is_classifier

    kind = _find_class(path)
    try:
        model = kind(**params)
    except TypeError as error:
        raise UserError(f"{path}: {error}.") from None
    if not is_classifier(model):
        raise UserError(f"{path} is no classifier.")
    return model


def _find_class(path: str) -> Any:
    """Return the class at a path of an allowed package."""
    module, _, name = path.rpartition(".")
    if not path.startswith(ALLOWED_PACKAGES):
        packages = ", ".join(f"{package}..." for package in ALLOWED_PACKAGES)
        raise UserError(f"{path}: a model is named by its path, {packages}")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise UserError(f"{path}: there is no such class.") from None


def fit_classifier(
    spec: Mapping[str, Any], X: FloatArray, y: NDArray[np.int64], seed: int
) -> Any:
    """Return the classifier fitted on records (n, D) and class indices (n,)."""
    return make_classifier(spec, seed).fit(X, y)
