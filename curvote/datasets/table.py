"""A user's own table, CSV or Parquet: one client a row, with public bounds.

A feature is a number with public bounds, or a text of public categories, each of which
becomes a number of its own, 0 or 1. A text that is no category is refused: as a row of
zeros, a misspelt category or a new code of the laboratory would pass for data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat, ValidationInfo, field_validator

from curvote.datasets import frames
from curvote.datasets.listed import ONCE
from curvote.datasets.own import labelled, table_card, table_scan
from curvote.datasets.own.examined import Examined
from curvote.datasets.own.given import LabelText
from curvote.datasets.own.labelled import Labelled
from curvote.datasets.tables import tabular
from curvote.datasets.tables.tabular import TableParameters

SIMULATED = False
GIVEN = True  # the file is the user's: no publisher, no entry in sources.toml
Text = Annotated[str, Field(min_length=1)]
Bounds = dict[str, tuple[FiniteFloat, FiniteFloat]]
Categories = dict[str, Annotated[tuple[LabelText, ...], ONCE]]


class Parameters(Labelled, TableParameters):
    """What ``source:`` may say: file, columns, classes, the features' public bounds.

    ``categories`` lists the texts of a feature that is no number. A mark of
    `table_rows.MARKS` that is listed there is a category, and not missing.
    """

    name: Literal["table"] = "table"
    path: Text
    label: Text
    features: Annotated[tuple[Text, ...], Field(min_length=1)]
    categories: Categories = Field(default_factory=dict)
    bounds: Bounds = Field(default_factory=dict)
    id: Text | None = None

    @field_validator("features")
    @classmethod
    def _once(cls, features: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        columns = [*features, info.data.get("label")]
        twice = sorted({name for name in features if columns.count(name) > 1})
        if twice:
            raise ValueError(f"columns that are named twice: {', '.join(twice)}")
        return features

    @field_validator("categories")
    @classmethod
    def _features(cls, categories: Categories, info: ValidationInfo) -> Categories:
        features = info.data.get("features", categories)
        other = [name for name in categories if name not in features]
        if other:
            raise ValueError(f"categories of what is no feature: {', '.join(other)}")
        return categories

    @field_validator("bounds")
    @classmethod
    def _complete(cls, bounds: Bounds, info: ValidationInfo) -> Bounds:
        if "categories" not in info.data:  # wrong, and said
            return bounds
        features = info.data.get("features", bounds)
        texts = info.data["categories"]
        wrong = [name for name, (low, high) in bounds.items() if not low < high]
        problems = {
            "every feature needs public bounds [low, high], or categories, known"
            " without the data; there are none for": [
                x for x in features if x not in {*bounds, *texts}
            ],
            "bounds of what is no feature": [x for x in bounds if x not in features],
            "bounds of what has categories": [x for x in bounds if x in texts],
            "the first must be below the second": wrong,
        }
        said = [f"{what}: {', '.join(who)}" for what, who in problems.items() if who]
        if said:
            raise ValueError("; ".join(said))
        return bounds

    @field_validator("id")
    @classmethod
    def _other(cls, name: str | None, info: ValidationInfo) -> str | None:
        if name in {*info.data.get("features", ()), info.data.get("label")} - {None}:
            raise ValueError(
                "it must be another column than the features and the label"
            )
        return name


files, size, classes = frames.own_file, frames.no_size, labelled.classes


def width(parameters: Parameters) -> int:
    """Return how many numbers a row has by the pipeline."""
    texts = parameters.categories
    return sum(len(texts.get(name, ("",))) for name in parameters.features)


def facts(parameters: Parameters, paths: Mapping[str, Path]) -> dict[str, Any]:
    """Return what is public about the clients, as plain JSON values; reads the file.

    Raises:
        UserError: an unreadable file, or all violations by kind, with their count and
            at most ten rows each; row 1 is the first below the header.
    """
    path = paths["path"]
    found = table_scan.survey(parameters, path)
    notes = ["The unit of privacy is one row of the table."]
    told = tabular.facts(found.schema, found, f"Table {path.name}", notes, parameters)
    texts = {name: sorted(known) for name, known in parameters.categories.items()}
    return told | ({"categories": texts} if texts else {})


def examined(parameters: Parameters, paths: Mapping[str, Path]) -> Examined:
    """Return the card of the file, for its owner; UserError: all that is wrong."""
    return table_card.examined(parameters, paths["path"])


def pieces(
    parameters: Parameters, paths: Mapping[str, Path]
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield client_id, label, group (n,) and curve (n, p) of at most 65,536 clients.

    Without a column ``id`` a client is named by its row; see `arrow_cells.identities`
    for what a text becomes.
    """
    yield from table_scan.pieces(parameters, paths["path"])


def members(
    parameters: Parameters, paths: Mapping[str, Path]
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield client_id and group (n,) of the same clients; no curve is made."""
    yield from table_scan.members(parameters, paths["path"])


def clients(
    parameters: Parameters, paths: Mapping[str, Path]
) -> dict[str, NDArray[Any]]:
    """Return all ``pieces`` as one table: for files that fit into memory."""
    parts = list(pieces(parameters, paths))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
