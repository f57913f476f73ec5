"""A user's own table, CSV or Parquet: one client a row, with public bounds.

A feature is a number with public bounds, or a text of public categories, each of which
becomes a number of its own, 0 or 1. A text that is no category is refused: as a row of
zeros, a misspelt category or a new code of the laboratory would pass for data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat, ValidationInfo, field_validator

from curvote.datasets import frames
from curvote.datasets.listed import ONCE
from curvote.datasets.own import arrow_cells as cells
from curvote.datasets.own import labelled
from curvote.datasets.own.arrow_cells import Floats, Integers
from curvote.datasets.own.given import (
    LabelText,
    Violations,
    batches,
    usable,
)
from curvote.datasets.own.labelled import Labelled
from curvote.datasets.tables import tabular
from curvote.datasets.tables.features import Feature, category
from curvote.datasets.tables.one_hot import one_hot
from curvote.datasets.tables.tabular import Prepared, TableParameters, TableSchema
from curvote.errors import UserError

SIMULATED = False
GIVEN = True  # the file is the user's: no publisher, no entry in sources.toml
MARKS = ("NA", "N/A", "NaN", "nan", "null", "?")  # beside empty cells
Text = Annotated[str, Field(min_length=1)]
Bounds = dict[str, tuple[FiniteFloat, FiniteFloat]]
Categories = dict[str, Annotated[tuple[LabelText, ...], ONCE]]


class Parameters(Labelled, TableParameters):
    """What ``source:`` may say: file, columns, classes, the features' public bounds.

    ``categories`` lists the texts of a feature that is no number. A mark of `MARKS`
    that is listed there is a category, and not missing.
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
        features = info.data.get("features", bounds)
        texts = info.data.get("categories", {})
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
        UserError: everything that is wrong with the file, at once.
    """
    path = paths["path"]
    schema, prepared = load(parameters, path)
    notes = ["The unit of privacy is one row of the table."]
    told = tabular.facts(schema, prepared, f"Table {path.name}", notes, parameters)
    texts = {name: sorted(known) for name, known in parameters.categories.items()}
    return told | ({"categories": texts} if texts else {})


def clients(
    parameters: Parameters, paths: Mapping[str, Path]
) -> dict[str, NDArray[Any]]:
    """Return the columns client_id, label, group (n,) and curve (n, p).

    Without a column ``id`` a client is named by its row; see `arrow_cells.identities`
    for what a text becomes.
    """
    _, prepared = load(parameters, paths["path"])
    return prepared.columns()


def load(parameters: Parameters, path: Path) -> tuple[TableSchema, Prepared]:
    """Return the schema and the clients of the user's table at ``path``.

    Raises:
        UserError: an unreadable file, or all violations by kind, with their count and
            at most ten rows each; row 1 is the first below the header.
    """
    import pandas as pd

    violations = Violations(path)
    columns = _columns(parameters, path, violations)
    known = parameters.places
    codes = _labels(parameters, columns[parameters.label], known, violations)
    values = {
        x: _values(x, parameters, columns, violations) for x in parameters.features
    }
    ids = _ids(parameters, columns, violations, len(codes))
    names = labelled.named(violations, parameters.label, known, parameters)
    place = np.array([names.index(text) for text in known])
    frame = pd.DataFrame({**values, parameters.label: place[codes]}, pd.Index(ids))
    frame, schema = one_hot(frame, _schema(parameters, names))
    schema = _centred(schema, parameters)
    policies = parameters.duplicates, parameters.missing
    return schema, tabular.prepare(frame, schema, *policies)


def _columns(
    parameters: Parameters, path: Path, violations: Violations
) -> dict[str, Any]:
    import pyarrow as pa

    wanted = [*parameters.features, parameters.label, *filter(None, [parameters.id])]
    parts = list(batches(path, wanted, violations))
    table = pa.Table.from_batches(parts) if parts else pa.table({})
    if not table.num_rows:
        raise UserError(f"{path} has no rows.")
    found = (cells.plain(table[name].combine_chunks()) for name in wanted)
    return dict(zip(wanted, found, strict=True))


def _labels(
    parameters: Parameters, column: Any, known: dict[str, int], violations: Violations
) -> Integers:
    """Return the codes of the labels, those listed as their places."""
    listed = len(known)
    codes = cells.labels(column, known, listed + cells.VOCABULARY)
    _count(violations, f"{parameters.label} is empty", codes < 0)
    if listed:
        what = f"{parameters.label} {parameters.none_of_them}"
        _count(violations, what, codes >= listed, column)
    return codes


def _values(
    name: str, parameters: Parameters, columns: dict[str, Any], violations: Violations
) -> Floats:
    """Return a feature, NaN where it is missing: a number, or a category's code."""
    texts = sorted(parameters.categories.get(name, ()))
    if not texts:
        return _numbers(name, columns[name], violations)
    column = _unmarked(columns[name], texts)
    codes = cells.labels(column, {text: code for code, text in enumerate(texts)})
    what = f"{name} is none of the categories {', '.join(texts)}"
    _count(violations, what, codes >= len(texts), column)
    return np.where(codes < 0, np.nan, codes)


def _unmarked(column: Any, meant: Collection[str] = ()) -> Any:
    """Return trimmed texts, null where one means missing; numbers as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not cells.is_text(column):
        return column
    text = pc.utf8_trim_whitespace(column)
    marks = pa.array([mark for mark in MARKS if mark not in meant], pa.string())
    return cells.plain(pc.if_else(pc.is_in(text, marks), None, text))


def _numbers(name: str, column: Any, violations: Violations) -> Floats:
    """Return a feature, NaN where it is missing; count cells that are no number."""
    import pyarrow.compute as pc

    column = _unmarked(column)
    with usable(violations.path, name, column):
        values = cells.numbers(column)
    said = np.asarray(pc.is_valid(column)) & cells.is_text(column)
    wrong = np.isinf(values) | (np.isnan(values) & said)
    _count(violations, f"{name} is not a finite number", wrong, column)
    return values


def _ids(
    parameters: Parameters, columns: dict[str, Any], violations: Violations, n: int
) -> Integers:
    if parameters.id is None:
        return np.arange(1, n + 1)
    column = cells.trimmed(columns[parameters.id])
    empty = np.asarray(column.is_null())
    _count(violations, f"{parameters.id} is empty", empty)
    with usable(violations.path, parameters.id, column):
        given = column.fill_null("0" if cells.is_text(column) else 0)
        ids, _ = cells.identities(given)
    _, first = np.unique(ids, return_index=True)
    again = ~empty
    again[first] = False
    what = f"{parameters.id} repeats an earlier one{cells.SPELT}"
    _count(violations, what, again, column)
    return ids


def _count(
    violations: Violations, what: str, wrong: NDArray[np.bool_], shown: Any = None
) -> None:
    rows = np.flatnonzero(wrong)
    texts = (
        f"row {row + 1}" + ("" if shown is None else f" {shown[row].as_py()!r}")
        for row in rows
    )
    violations.add(what, len(rows), texts)


def _schema(parameters: Parameters, classes: tuple[str, ...]) -> TableSchema:
    why = "stated by the user"
    texts, bounds = parameters.categories, parameters.bounds
    return TableSchema(
        features=tuple(
            category(x, texts[x], why)
            if x in texts
            else Feature(x, "", *bounds[x], why)
            for x in parameters.features
        ),
        label=parameters.label,
        labels={name: place for place, name in enumerate(classes)},
        classes=classes,
    )


def _centred(schema: TableSchema, parameters: Parameters) -> TableSchema:
    """Return the schema in which a missing text is a bit of each category."""
    shares = {
        f"{name} = {text}": 1 / len(texts)
        for name, texts in parameters.categories.items()
        for text in texts
    }
    features = (
        replace(f, centre=shares.get(f.name, f.centre)) for f in schema.features
    )
    return replace(schema, features=tuple(features))
