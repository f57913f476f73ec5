"""The final classifier as MLflow stores it: a signature, pinned libraries, no data."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

_LIBRARIES = ("curvote", "numpy", "pandas", "scikit-learn", "skops")


def save_model(run_id: str, model_id: str, classifier: Any) -> str:
    """Store a classifier of raw curves; no row of data goes with it."""
    import mlflow.sklearn
    from mlflow.models import Model, ModelSignature
    from mlflow.types import ColSpec, Schema

    from curvote.curve_classifier import grid_names

    names = grid_names(classifier.grid)
    inputs = Schema([ColSpec("double", name) for name in names])
    kind = type(classifier)
    info = Model.log(
        None,
        mlflow.sklearn,
        run_id=run_id,
        model_id=model_id,
        sk_model=classifier,
        signature=ModelSignature(inputs, Schema([ColSpec("string")])),
        pip_requirements=[f"{name}=={version_of(name)}" for name in _LIBRARIES],
        serialization_format="skops",
        skops_trusted_types=[f"{kind.__module__}.{kind.__qualname__}"],
    )
    return str(info.model_uri)


def version_of(distribution: str) -> str:
    """Return the installed version of a distribution; 0 where it is none."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "0"
