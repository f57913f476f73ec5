"""Final models in MLflow: signature, pinned libraries, no data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlflow import MlflowClient


# The version that a plain "give me the model" means; MLflow keeps `latest` to itself.
CURRENT_ALIAS = "current"
_PINNED = ("curvote", "numpy", "pandas", "scikit-learn", "skops")
_PINNED_FOR_RECORDS = ("pyarrow", "pydantic")  # what reads raw records


def save_model(run_id: str, model_id: str, model: Any) -> str:
    """Store any object with ``predict`` and ``columns``, without any row.

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
            f"{name}=={installed_version(name)}"
            for name in (*_PINNED, *(_PINNED_FOR_RECORDS if form else ()))
        ],
        serialization_format="skops",
        skops_trusted_types=_trusted_types(model),
    )
    return str(info.model_uri)


def _trusted_types(model: Any) -> list[str]:
    """Return the types in a model from its own package or scikit-learn."""
    import skops.io

    homes = {type(model).__module__.partition(".")[0], "sklearn"}
    untrusted = skops.io.get_untrusted_types(data=skops.io.dumps(model))
    return [name for name in untrusted if name.partition(".")[0] in homes]


def model_name(*words: str) -> str:
    """Return a model's name from words; MLflow allows no dots."""
    name = " ".join(filter(None, words)).replace(".", ",")
    return re.sub(r"""[/:%"']""", "-", name)


def model_exists(client: MlflowClient, model: str) -> bool:
    """Return whether a logged model still exists."""
    from mlflow.exceptions import MlflowException

    try:
        return bool(client.get_logged_model(model))
    except MlflowException:
        return False


def link_model(client: MlflowClient, run_id: str, model: str) -> None:
    """Link a model of an earlier run to this run."""
    from mlflow.entities import LoggedModelOutput

    client.log_outputs(run_id, [LoggedModelOutput(model, 0)])


def register_model(
    client: MlflowClient, name: str, model: str, run_id: str, tags: Mapping[str, str]
) -> None:
    """Register a model's newest version as the current one.

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
        current = client.get_model_version_by_alias(name, CURRENT_ALIAS)
        if current.tags.get("model") == model:
            return
    model_version = client.create_model_version(
        name,
        f"models:/{model}",
        run_id,
        {**tags, "model": model},
        description=tags.get("headline"),
        model_id=model,
    )
    client.set_registered_model_alias(name, CURRENT_ALIAS, model_version.version)


def installed_version(distribution: str) -> str:
    """Return the installed version of a distribution; "0" if there is none."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "0"
