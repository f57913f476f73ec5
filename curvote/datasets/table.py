"""A user's own table, CSV or Parquet: one client a row, numbers with public bounds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat, ValidationInfo, field_validator

from curvote.datasets import frames
from curvote.datasets.own import arrow_cells as cells
from curvote.datasets.own.arrow_cells import Floats, Integers
from curvote.datasets.own.given import (
    LabelText,
    Violations,
    batches,
    check_labels,
    usable,
)
from curvote.datasets.tables import tabular
from curvote.datasets.tables.features import Feature
from curvote.datasets.tables.tabular import Prepared, TableParameters, TableSchema
from curvote.errors import UserError

SIMULATED = False
GIVEN = True  # the file is the user's: no publisher, no entry in sources.toml
MARKS = ("NA", "N/A", "NaN", "nan", "null", "?")  # beside empty cells
Text = Annotated[str, Field(min_length=1)]
Bounds = dict[str, tuple[FiniteFloat, FiniteFloat]]


class Parameters(TableParameters):
    """What ``source:`` may say: file, columns, label, the features' public bounds."""

    name: Literal["table"] = "table"
    path: Text
    label: Text
    positive: LabelText
    features: Annotated[tuple[Text, ...], Field(min_length=1)]
    bounds: Bounds
    id: Text | None = None

    @field_validator("features")
    @classmethod
    def _once(cls, features: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        columns = [*features, info.data.get("label")]
        twice = sorted({name for name in features if columns.count(name) > 1})
        if twice:
            raise ValueError(f"columns that are named twice: {', '.join(twice)}")
        return features

    @field_validator("bounds")
    @classmethod
    def _complete(cls, bounds: Bounds, info: ValidationInfo) -> Bounds:
        features = info.data.get("features", bounds)
        wrong = [name for name, (low, high) in bounds.items() if not low < high]
        problems = {
            "every feature needs public bounds [low, high], known without the data;"
            " there are none for": [x for x in features if x not in bounds],
            "bounds of what is no feature": [x for x in bounds if x not in features],
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


files, size = frames.own_file, frames.no_size


def width(parameters: Parameters) -> int:
    """Return how many features a row has by the pipeline."""
    return len(parameters.features)


def facts(parameters: Parameters, paths: Mapping[str, Path]) -> dict[str, Any]:
    """Return what is public about the clients, as plain JSON values; reads the file.

    Raises:
        UserError: everything that is wrong with the file, at once.
    """
    path = paths["path"]
    schema, prepared = load(parameters, path)
    notes = ["The unit of privacy is one row of the table."]
    return tabular.facts(schema, prepared, f"Table {path.name}", notes, parameters)


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
    known: dict[str, int] = {}
    labels = cells.labels(columns[parameters.label], known)
    _count(violations, f"{parameters.label} is empty", labels < 0)
    check_labels(violations, parameters.label, known, parameters.positive)
    values = {x: _numbers(x, columns[x], violations) for x in parameters.features}
    ids = _ids(parameters, columns, violations, len(labels))
    violations.check()
    positive = (labels == known[parameters.positive]).astype(np.int64)
    frame = pd.DataFrame({**values, parameters.label: positive}, index=pd.Index(ids))
    schema = _schema(parameters, known)
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


def _numbers(name: str, column: Any, violations: Violations) -> Floats:
    """Return a feature, NaN where it is missing; count cells that are no number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if cells.is_text(column):
        marked = pc.is_in(pc.utf8_trim_whitespace(column), pa.array(MARKS))
        column = pc.if_else(marked, None, column)
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


def _schema(parameters: Parameters, known: Mapping[str, int]) -> TableSchema:
    (negative,) = set(known) - {parameters.positive}
    why = "stated by the user"
    features = (Feature(x, "", *parameters.bounds[x], why) for x in parameters.features)
    return TableSchema(
        features=tuple(features),
        label=parameters.label,
        labels={negative: 0, parameters.positive: 1},
        classes=(negative, parameters.positive),
    )
