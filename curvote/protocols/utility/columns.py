"""Inputs of the stages: a record's columns, classifiers by path, packed arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from curvote import validate
from curvote.chain.stage import Metadata
from curvote.errors import UserError
from curvote.named_columns import grid_names
from curvote.validate import FloatArray

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
    sensitive_names = (
        names if record["sensitive"] == ALL else tuple(record["sensitive"])
    )
    sensitive = tuple(
        _column_index(names, name, "sensitive") for name in sensitive_names
    )
    stated_bounds = record["bounds"]
    for name in stated_bounds:
        _column_index(sensitive_names, name, "bounds")
    bounds = [
        stated_bounds.get(name) or _public_bounds(metadata, names_of_source, name)
        for name in sensitive_names
    ]
    return RecordColumns(names, places, sensitive, np.array(bounds, dtype=np.float64))


def column_names(metadata: Metadata) -> list[str]:
    """Return the names of the source's columns: features, or the grid."""
    named = [entry["name"] for entry in metadata.get("features") or ()]
    return named or grid_names(metadata["grid"])


def _column_index(names: Sequence[str], name: str, key: str) -> int:
    """Return the index of a column; an unknown name is a UserError."""
    validate.one_of(list(names), **{f"record.{key}": name})
    return list(names).index(name)


def _public_bounds(
    metadata: Metadata, names: Sequence[str], name: str
) -> tuple[float, float]:
    """Return the public bounds of a column; without any a UserError."""
    features = metadata.get("features")
    if not features:
        raise UserError(
            f"record: state the bounds of {name}: the source has no public ones.",
            where=("record", "bounds"),
        )
    feature = features[list(names).index(name)]
    return feature["lower"], feature["upper"]
