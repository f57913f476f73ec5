"""Inputs of the stages: a record's columns, classifiers by path, packed arrays."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.chain.stage import Metadata
from curvote.curves.columns import grid_names

ALL: Final = "all"


@dataclass(frozen=True)
class RecordColumns:
    """Names and indices of the columns, (D,); ``sensitive`` index into these."""

    names: tuple[str, ...]
    places: tuple[int, ...]
    sensitive: tuple[int, ...]
    bounds: FloatArray

    def of(self, records: FloatArray) -> FloatArray:
        """Return the model's columns of the source's records."""
        return np.asarray(records[:, list(self.places)], dtype=np.float64)


def record_columns(metadata: Metadata, record: Mapping[str, Any]) -> RecordColumns:
    """Return the columns named by a pipeline; a wrong name is a UserError."""
    names_of_source = column_names(metadata)
    names = tuple(record["features"] or names_of_source)
    places = tuple(_column_index(names_of_source, name, "features") for name in names)
    noised = names if record["sensitive"] == ALL else tuple(record["sensitive"])
    sensitive = tuple(_column_index(names, name, "sensitive") for name in noised)
    for name in record["bounds"]:
        _column_index(noised, name, "bounds")
    bounds, features = [], metadata.get("features")
    for name in noised:
        ends = record["bounds"].get(name)
        if not ends:
            if not features:
                why = f"state the bounds of {name}: the source has no public ones."
                raise UserError(f"record: {why}", where=("record", "bounds"))
            feature = features[names_of_source.index(name)]
            ends = feature["lower"], feature["upper"]
        bounds.append(ends)
    return RecordColumns(names, places, sensitive, np.array(bounds, dtype=np.float64))


def column_names(metadata: Metadata) -> list[str]:
    """Return the names of the source's columns: features, or the grid."""
    named = [entry["name"] for entry in metadata.get("features") or ()]
    return named or grid_names(metadata["grid"])


def _column_index(names: Sequence[str], name: str, key: str) -> int:
    """Return the index of a column; an unknown name is a UserError."""
    validate.one_of(list(names), **{f"record.{key}": name})
    return list(names).index(name)


# Only code of these packages is run: a path is a text from a file.
ALLOWED_PACKAGES: Final = ("sklearn.",)


def make_classifier(spec: Mapping[str, Any], seed: int) -> Any:
    """Return the unfitted classifier of ``models``; without any a UserError.

    One that draws gets ``seed``, unless its parameters name one.
    """
    from sklearn.base import is_classifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    path = spec["path"]
    kind = _find_class(path)
    try:
        model = kind(**spec["params"])
    except TypeError as error:
        raise UserError(f"{path}: {error}.") from None
    if not is_classifier(model):
        raise UserError(f"{path} is no classifier.")
    if model.get_params().get("random_state", 0) is None:
        model.set_params(random_state=seed)
    scaled = spec["scale"] == "standard"
    return make_pipeline(StandardScaler(), model) if scaled else model


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


Arrays = dict[str, NDArray[Any]]


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return arrays as a column of one uncompressed file without times."""
    buffer = BytesIO()
    np.savez(buffer, allow_pickle=False, **{n: arrays[n] for n in sorted(arrays)})
    return np.array([buffer.getvalue()], dtype=object)


def unpack_arrays(data: bytes) -> Arrays:
    """Return the arrays of a packed file."""
    with np.load(BytesIO(data), allow_pickle=False) as read:
        return {name: read[name] for name in read.files}
