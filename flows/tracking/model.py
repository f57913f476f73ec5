"""The final model as MLflow stores it: a signature, pinned libraries, no data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlflow import MlflowClient

# The version that a plain "give me the model" means; MLflow keeps `latest` to itself.
ALIAS = "current"
_LIBRARIES = ("curvote", "numpy", "pandas", "scikit-learn", "skops")
_OF_FORMS = ("pyarrow", "pydantic")  # what reads raw records


def save_model(run_id: str, model_id: str, model: Any) -> str:
    """Store any object with ``predict`` and ``columns``; nobody's row goes with it.

    Where the model carries the form of raw records, its columns are theirs, and the
    example is made of what is stated in public.
    """
    import mlflow.sklearn
    import pandas as pd
    from mlflow.models import Model, ModelSignature
    from mlflow.types import ColSpec, Schema
    from mlflow.types.schema import AnyType

    # Of any type, and not required: the model itself reads whole numbers, too, and
    # says in a line what is missing; MLflow would print the caller's data.
    anything = AnyType()  # type: ignore[no-untyped-call]
    form = getattr(model, "form", None)
    names = dict.fromkeys([*(form.raw if form else ()), *model.columns])
    inputs = Schema([ColSpec(anything, name, required=False) for name in names])
    row = form.example() if form else {}
    # Names as objects: MLflow compares them with a range, of which pandas 3 warns.
    example = pd.DataFrame([[*row.values()]], columns=pd.Index(row, dtype=object))
    info = Model.log(
        None,
        mlflow.sklearn,
        run_id=run_id,
        model_id=model_id,
        sk_model=model,
        signature=ModelSignature(inputs, Schema([ColSpec("string")])),
        input_example=example if row else None,
        pip_requirements=[
            f"{name}=={version_of(name)}"
            for name in (*_LIBRARIES, *(_OF_FORMS if form else ()))
        ],
        serialization_format="skops",
        skops_trusted_types=_own_types(model),
    )
    return str(info.model_uri)


def _own_types(model: Any) -> list[str]:
    """Return the types in a model that come from its own home, or from scikit-learn."""
    import skops.io

    homes = {type(model).__module__.partition(".")[0], "sklearn"}
    found = skops.io.get_untrusted_types(data=skops.io.dumps(model))
    return [name for name in found if name.partition(".")[0] in homes]


def model_name(*words: str) -> str:
    """Return a name from words; MLflow takes no dots: a decimal point is a comma."""
    name = " ".join(filter(None, words)).replace(".", ",")
    return re.sub(r"""[/:%"']""", "-", name)


def exists(client: MlflowClient, model: str) -> bool:
    """Say whether a logged model has not been deleted since."""
    from mlflow.exceptions import MlflowException

    try:
        return bool(client.get_logged_model(model))
    except MlflowException:
        return False


def link(client: MlflowClient, run_id: str, model: str) -> None:
    """Show a model, made for an earlier run, as an outcome of this one, too."""
    from mlflow.entities import LoggedModelOutput

    client.log_outputs(run_id, [LoggedModelOutput(model, 0)])


def register(
    client: MlflowClient, name: str, model: str, run_id: str, tags: Mapping[str, str]
) -> None:
    """Make a model the newest version of a registered one, and the current one.

    Its tag ``headline`` describes it. One that is current already stays as it is.
    """
    from mlflow.exceptions import MlflowException

    name = re.sub(r"[/:]", "-", name)
    try:
        client.create_registered_model(name)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    with suppress(MlflowException):  # none is current yet
        current = client.get_model_version_by_alias(name, ALIAS)
        if current.tags.get("model") == model:
            return
    made = client.create_model_version(
        name,
        f"models:/{model}",
        run_id,
        {**tags, "model": model},
        description=tags.get("headline"),
        model_id=model,
    )
    client.set_registered_model_alias(name, ALIAS, made.version)


def version_of(distribution: str) -> str:
    """Return the installed version of a distribution; 0 where it is none."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "0"
