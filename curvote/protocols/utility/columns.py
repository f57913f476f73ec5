"""The columns of a record that a model reads, and which of them are sensitive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from curvote import validate
from curvote.chain.stage import Facts
from curvote.errors import UserError
from curvote.named_columns import grid_names
from curvote.validate import FloatArray

ALL: Final = "all"


@dataclass(frozen=True)
class Columns:
    """Names and places of the columns, (D,); ``sensitive`` are places among these."""

    names: tuple[str, ...]
    places: tuple[int, ...]
    sensitive: tuple[int, ...]
    bounds: FloatArray

    def of(self, records: FloatArray) -> FloatArray:
        """Return what the model reads of the source's records."""
        return np.asarray(records[:, list(self.places)], dtype=np.float64)


def columns_of(facts: Facts, record: Mapping[str, Any]) -> Columns:
    """Return the columns as a pipeline names them; a wrong name is a UserError."""
    known = names_of(facts)
    names = tuple(record["features"] or known)
    places = tuple(_place(known, name, "features") for name in names)
    asked = names if record["sensitive"] == ALL else tuple(record["sensitive"])
    sensitive = tuple(_place(names, name, "sensitive") for name in asked)
    stated = record["bounds"]
    for name in stated:
        _place(asked, name, "bounds")
    bounds = [stated.get(name) or _public(facts, known, name) for name in asked]
    return Columns(names, places, sensitive, np.array(bounds, dtype=np.float64))


def names_of(facts: Facts) -> list[str]:
    """Return the names of the source's columns: its features, or the grid."""
    named = [each["name"] for each in facts.get("features") or ()]
    return named or grid_names(facts["grid"])


def _place(known: Sequence[str], name: str, key: str) -> int:
    validate.one_of(list(known), **{f"record.{key}": name})
    return list(known).index(name)


def _public(facts: Facts, known: Sequence[str], name: str) -> tuple[float, float]:
    features = facts.get("features")
    if not features:
        raise UserError(
            f"record: state the bounds of {name}: the source has no public ones.",
            where=("record", "bounds"),
        )
    mine = features[list(known).index(name)]
    return mine["lower"], mine["upper"]
