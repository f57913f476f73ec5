"""Models of runs as MLflow saves and loads them: signature, example, what they take.

A signature states types, and a model takes more than MLflow's types can say: whole
numbers where a reader of CSV made them of a `double` column, empty cells, words that
stand for none, curves as an array or by the names of their grid points in any order.
MLflow would refuse these and print the caller's data; so what this module has loaded
checks its input itself, and says in a line what is missing.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from mlflow.models import Model
    from mlflow.types import Schema

_PINNED = ("curvote", "numpy", "pandas", "scikit-learn", "skops")
_PINNED_FOR_RECORDS = ("pyarrow", "pydantic")  # what reads raw records
_SERVER_COLUMN = "server"  # the one column of numbers that count (`federated`)


def log_model(
    run_id: str, model_id: str, model: Any, facts: Mapping[str, Any] | None = None
) -> str:
    """Store any object with ``predict`` and ``columns``, without any row.

    Where the model carries the form of raw records, its columns are theirs. The input
    example is made up of what is stated in public: a form's bounds and categories, or
    the ``features`` of ``facts``, what the cell's stages recorded.
    """
    import skops.io
    from mlflow.models import Model, ModelSignature
    from mlflow.types import ColSpec, Schema

    # What is trusted is of the model's own package or scikit-learn.
    homes = {type(model).__module__.partition(".")[0], "sklearn"}
    untrusted = skops.io.get_untrusted_types(data=skops.io.dumps(model))
    form, features = getattr(model, "form", None), (facts or {}).get("features") or ()
    pinned = (*_PINNED, *(_PINNED_FOR_RECORDS if form else ()))
    pinned += (*getattr(model, "libraries", ()),)
    inputs = input_schema(model, features)
    info = Model.log(
        None,
        sys.modules[__name__],
        run_id=run_id,
        model_id=model_id,
        sk_model=model,
        signature=ModelSignature(inputs, Schema([ColSpec("string")])),
        input_example=invented_rows(model, features),
        pip_requirements=[f"{name}=={installed_version(name)}" for name in pinned],
        serialization_format="skops",
        validate_serving_input=False,  # it loads each model once more
        skops_trusted_types=[
            name for name in untrusted if name.partition(".")[0] in homes
        ],
    )
    return str(info.model_uri)


def input_schema(model: Any, features: Collection[Any]) -> Schema:
    """Return the columns that a model reads with their types; of curves the shape.

    Of a form either its raw columns or the model's numbers will do: none is required.
    """
    from mlflow.types import ColSpec, Schema, TensorSpec

    form = getattr(model, "form", None)
    if not (form or features or _SERVER_COLUMN in model.columns):
        return Schema([TensorSpec(np.dtype(np.float64), (-1, len(model.columns)))])
    types = form.types() if form else {_SERVER_COLUMN: "long"}
    names = dict.fromkeys([*(types if form else ()), *model.columns])
    columns = ((types.get(name, "double"), name) for name in names)
    return Schema([ColSpec(*column, required=form is None) for column in columns])


def invented_rows(model: Any, features: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return records that nobody has, as a model takes them: the same each time.

    Of bounds it is the middle, of a curve a wave about it; nothing of any record.
    """
    import pandas as pd

    if form := getattr(model, "form", None):
        rows = form.example()
    else:
        middle = {f["name"]: (f["lower"] + f["upper"]) / 2 for f in features}
        grid = [name for name in model.columns if name not in {_SERVER_COLUMN, *middle}]
        wave = (math.sin(2 * math.pi * j / len(grid)) for j in range(len(grid)))
        numbers = {_SERVER_COLUMN: 0} | middle | dict(zip(grid, wave, strict=True))
        rows = {name: [numbers[name]] for name in model.columns}
    # Names as objects: MLflow compares them with a range, of which pandas 3 warns.
    return pd.DataFrame(rows).set_axis(pd.Index(rows, dtype=object), axis="columns")


def installed_version(distribution: str) -> str:
    """Return the installed version of a distribution; "0" if there is none."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "0"


def save_model(path: str, mlflow_model: Model | None = None, **options: Any) -> None:
    """Write a folder of MLflow's scikit-learn flavor that this module loads."""
    import mlflow.sklearn
    from mlflow.models import Model

    options.pop("validate_serving_input", None)  # `Model.log` has read it
    stored = Model() if mlflow_model is None else mlflow_model
    mlflow.sklearn.save_model(path=path, mlflow_model=stored, **options)
    stored.flavors["python_function"]["loader_module"] = __name__
    stored.save(str(Path(path) / "MLmodel"))


def _load_pyfunc(path: str) -> Any:
    """Load a model for MLflow, which looks for this name."""
    import pandas as pd

    pyfunc: Any = import_module("mlflow.pyfunc")  # untyped
    check = getattr(pyfunc, "_enforce_schema", None)
    if check is not None and getattr(check, "__module__", "") != __name__:

        def check_others(data: Any, schema: Schema, flavor: str | None = None) -> Any:
            if flavor != __name__:
                return check(data, schema, flavor)
            if isinstance(data, Mapping):  # of JSON: a record, or columns
                single = all(np.ndim(value) == 0 for value in data.values())
                return pd.DataFrame([data] if single else dict(data))
            return data

        pyfunc._enforce_schema = check_others  # noqa: SLF001 - no other way in
    return import_module("mlflow.sklearn")._load_pyfunc(path)  # noqa: SLF001 - the same
