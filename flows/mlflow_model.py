"""The final model as MLflow stores it: a signature, pinned libraries, no data."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

_LIBRARIES = ("curvote", "numpy", "pandas", "scikit-learn", "skops")


def save_model(run_id: str, model_id: str, model: Any) -> str:
    """Store any object with ``predict`` and ``columns``; no row goes with it."""
    import mlflow.sklearn
    from mlflow.models import Model, ModelSignature
    from mlflow.types import ColSpec, Schema
    from mlflow.types.schema import AnyType

    # Of any type, and not required: the model itself reads whole numbers, too, and
    # says in a line what is missing; MLflow would print the caller's data.
    anything = AnyType()  # type: ignore[no-untyped-call]
    inputs = Schema([ColSpec(anything, name) for name in model.columns])
    info = Model.log(
        None,
        mlflow.sklearn,
        run_id=run_id,
        model_id=model_id,
        sk_model=model,
        signature=ModelSignature(inputs, Schema([ColSpec("string")])),
        pip_requirements=[f"{name}=={version_of(name)}" for name in _LIBRARIES],
        serialization_format="skops",
        skops_trusted_types=_own_types(model),
    )
    return str(info.model_uri)


def _own_types(model: Any) -> list[str]:
    """Return the types in a model that come from where its own type comes from."""
    import skops.io

    home = type(model).__module__.partition(".")[0]
    found = skops.io.get_untrusted_types(data=skops.io.dumps(model))
    return [name for name in found if name.partition(".")[0] == home]


def version_of(distribution: str) -> str:
    """Return the installed version of a distribution; 0 where it is none."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "0"
