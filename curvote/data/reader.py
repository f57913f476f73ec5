"""Reader of published tables: schema, checks, missing values and clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.chain.settings import Strict
from curvote.data import columns as frames
from curvote.data import raw_files
from curvote.data.columns import ClientColumns, Feature, Paths, find_violations
from curvote.data.raw_files import read

if TYPE_CHECKING:
    import pandas as pd

    from curvote.data.raw_files import Source


@dataclass(frozen=True, eq=False)
class TableCounts:
    """Public counts of a table.

    ``rows`` and ``distinct`` count the whole file, ``missing`` the missing values of
    each feature after the duplicates policy.
    """

    rows: int
    distinct: int
    missing: dict[str, int]

    def by_class(self, classes: Sequence[str]) -> list[int]:
        """Return how many clients each class has."""
        raise NotImplementedError


Duplicates = Literal["distinct", "keep"]
Missing = Literal["centre", "drop", "keep"]
Limits = Mapping[str, frames.Range]

_REPEATS = {
    "distinct": "{} of {} rows repeat an earlier one and were left out.",
    "keep": "{} of {} rows repeat an earlier one and were kept: where equal rows stand"
    " on both sides of a split, the accuracy is inflated.",
}
_MISSING = {
    "centre": "Missing values were filled with the public centre: {}.",
    "drop": "Rows with a missing value were left out; values were missing in: {}.",
    "keep": "Numbers that mean missing were kept as values: {}.",
}


class TableParameters(Strict):
    """Settings of ``source:`` of any table: repeated rows, missing values."""

    duplicates: Duplicates = "distinct"
    missing: Missing = "centre"


@dataclass(frozen=True)
class TableSchema:
    """The published layout of a table.

    ``labels`` maps the publisher's label texts to their places in ``classes``, the
    words for reports (negative, positive where there are two). ``ignored`` columns are
    dropped. ``marks`` are texts that mean "missing". ``order`` names all columns of a
    file without header (default: the features, then the label).
    """

    features: tuple[Feature, ...]
    label: str
    labels: Mapping[str, int]
    classes: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    marks: tuple[str, ...] = ("",)
    header: bool = True
    separator: str = ","
    order: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Return the names of the features."""
        return [feature.name for feature in self.features]

    @property
    def limits(self) -> Limits:
        """Return the bounds of the features as limits of what is possible."""
        return {x.name: (x.lower, x.upper) for x in self.features}

    @property
    def columns(self) -> list[str]:
        """Return the columns of a file without header, in their order."""
        return list(self.order) or [*self.names, self.label]


@dataclass(frozen=True, eq=False)
class PreparedTable(TableCounts):
    """Clients of a table: ``ids`` (n,), ``features`` (n, p), ``labels`` (n,), places.

    ``ids`` are line numbers of the file.
    """

    ids: NDArray[np.int64]
    features: NDArray[np.float64]
    labels: NDArray[np.int64]

    def by_class(self, classes: Sequence[str]) -> list[int]:
        """Return how many clients each class has."""
        return frames.class_counts(self.labels, classes)

    def columns(self) -> ClientColumns:
        """Return client_id, label, group (n,) and curve (n, p); a group a client."""
        return frames.client_columns(self.features, self.labels, self.ids)


def parse_table(data: bytes, schema: TableSchema) -> pd.DataFrame:
    """Return the text cells of ``data`` (UTF-8, LF or CR LF), indexed by line number.

    Raises:
        UserError: no UTF-8, no rows, wrong separator, or rows of other lengths.
    """
    import pandas as pd

    rows = frames.parse_records(data, schema.separator)
    names = rows.pop(0)[1] if schema.header else schema.columns
    frames.check_names(names, schema.separator)
    frames.check_lengths(rows, len(names), schema.separator)
    lines = pd.Index([line for line, _ in rows], dtype="int64", name="line")
    texts = [fields for _, fields in rows]
    return pd.DataFrame(texts, columns=list(names), index=lines, dtype=str)


def check_table(
    frame: pd.DataFrame, schema: TableSchema, allowed: Limits
) -> pd.DataFrame:
    """Return features as float64 (NaN = missing) and the label's class index.

    ``allowed`` are the limits of what is possible in each feature, wider than its
    public bounds: a value beyond the bounds is clipped later, an impossible one is a
    violation. Without an entry, every finite number is possible.

    Raises:
        UserError: all violations at once: each kind with count, lines and examples.
    """
    rules = {
        x.name: frames.cell_rules(x, schema.marks, allowed.get(x.name))
        for x in schema.features
    }
    rules[schema.label] = frames.one_of_rule(schema.labels)
    violations = find_violations(frame, rules, schema.ignored)
    if violations:
        raise UserError(frames.format_violations(violations))
    columns: dict[str, Any] = {}
    for feature in schema.features:
        cells = frame[feature.name]
        columns[feature.name] = frames.encode_cells(cells, feature, schema.marks)
    columns[schema.label] = frame[schema.label].map(dict(schema.labels)).astype("int64")
    return type(frame)(columns)


def check_counts(labels: Iterable[str], source: Source) -> None:
    """Raise a UserError unless there are ``source.rows`` labels, ``counts`` of each."""
    counts = Counter(labels)
    total = counts.total()
    rows = f"{total} rows instead of {source.rows}"
    problems = [rows] * (total != source.rows) + [
        f"{label} {counts[label]} instead of {source.counts.get(label, 0)}"
        for label in sorted({*source.counts, *counts})
        if counts[label] != source.counts.get(label, 0)
    ]
    if problems:
        raise UserError(f"wrong counts: {', '.join(problems)}.")


def prepare_clients(
    frame: pd.DataFrame, schema: TableSchema, duplicates: Duplicates, missing: Missing
) -> PreparedTable:
    """Return the clients of a table that passed the checks.

    ``distinct`` keeps the first of identical rows (features and label). ``centre``
    fills the public centre, ``drop`` leaves rows with a missing value out, ``keep``
    keeps the publisher's number.

    Raises:
        UserError: ``keep`` where a cell is empty, or ``drop`` where no row is left.
    """
    first = ~frame.duplicated().to_numpy()
    chosen = frame[first] if duplicates == "distinct" else frame
    values = chosen[schema.names].to_numpy(dtype=np.float64)
    lacking = missing_mask(values, schema)
    rows = ~lacking.any(axis=1) if missing == "drop" else np.full(len(values), True)
    if missing == "keep":
        empty = np.isnan(values).sum(axis=0).tolist()
        refuse_empty_cells(dict(zip(schema.names, empty, strict=True)))
    if missing == "drop" and lacking.any(axis=1).all():
        raise no_rows_error()
    return PreparedTable(
        ids=chosen.index.to_numpy(dtype=np.int64)[rows],
        features=fill_missing(values, lacking, schema, missing)[rows],
        labels=chosen[schema.label].to_numpy(dtype=np.int64)[rows],
        rows=len(frame),
        distinct=int(first.sum()),
        missing=dict(zip(schema.names, lacking.sum(axis=0).tolist(), strict=True)),
    )


def facts(
    schema: TableSchema,
    prepared: TableCounts,
    title: str,
    notes: Sequence[str],
    parameters: TableParameters,
) -> dict[str, Any]:
    """Return the public metadata of the clients as plain JSON values."""
    p = len(schema.features)
    sizes = {"rows": prepared.rows, "distinct": prepared.distinct}
    repeats = prepared.rows - prepared.distinct
    missing = _format_counts(prepared.missing)
    repeated = _REPEATS[parameters.duplicates].format(repeats, prepared.rows)
    lacking = _MISSING[parameters.missing].format(missing)
    return frames.facts(
        prepared.by_class(schema.classes),
        schema.classes,
        title=title,
        grid=list(range(p)),
        domain=[0, p - 1],
        unit="feature",
        notes=[*notes, *([repeated] * bool(repeats) + [lacking] * bool(missing))],
        features=[feature.to_json() for feature in schema.features],
        duplicates={"policy": parameters.duplicates, **sizes},
        missing={"policy": parameters.missing, "counts": prepared.missing},
    )


def missing_mask(values: NDArray[np.float64], schema: TableSchema) -> NDArray[np.bool_]:
    """Return a mask of the missing values (n, p)."""
    missing = np.isnan(values)
    for column, feature in enumerate(schema.features):
        if feature.missing:
            missing[:, column] |= np.isin(values[:, column], feature.missing)
    return missing


def fill_missing(
    values: NDArray[np.float64],
    lacking: NDArray[np.bool_],
    schema: TableSchema,
    missing: Missing,
) -> NDArray[np.float64]:
    """Return values (n, p) with the public centre for missing ones not kept."""
    if missing == "keep" or not lacking.any():
        return values
    centres = np.array([feature.middle for feature in schema.features])
    return np.where(lacking, centres, values)


def no_rows_error() -> UserError:
    """Return the error for a policy that leaves no row."""
    return UserError("missing: drop leaves no row; every row lacks a value.")


def refuse_empty_cells(empty: Mapping[str, int]) -> None:
    """Refuse cells without a number where missing values are kept."""
    if any(empty.values()):
        raise UserError(
            f"missing: keep, but cells hold no number: {_format_counts(empty)}. Only a"
            " number that means missing can be kept; write missing: centre or missing:"
            " drop."
        )


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.items() if n)


P = TypeVar("P", bound=TableParameters)
TitleAndNotes = tuple[str, Sequence[str]]
Coded = tuple["pd.DataFrame", TableSchema]


class PublishedTable(Generic[P]):
    """A published table as a data set; a subclass states what is special."""

    SIMULATED = False
    Parameters: type[P]
    file: str
    title: str
    schema: TableSchema
    allowed: Limits
    notes: Sequence[str] = ()

    def files(self, parameters: P) -> tuple[str, ...]:
        """Return the names of the raw files in data/sources.toml."""
        return (self.file,)

    def size(self, parameters: P) -> int | None:
        """Return how many clients there are by the published counts, None if unknown.

        Nothing is loaded.
        """
        return raw_files.find(self.file).rows

    def width(self, parameters: P) -> int:
        """Return how many features a client has by the public schema."""
        return len(self.schema.features)

    def facts(self, parameters: P, paths: Paths) -> dict[str, Any]:
        """Return the public metadata of the clients."""
        schema, prepared = self.load_clients(parameters, paths)
        title, notes = self.title_and_notes(parameters, prepared)
        return facts(schema, prepared, title, notes, parameters)

    def clients(self, parameters: P, paths: Paths) -> ClientColumns:
        """Return client_id, label, group (n,) and curve (n, p)."""
        return self.load_clients(parameters, paths)[1].columns()

    def check(self, data: bytes, source: Source) -> None:
        """Raise a UserError unless schema, rows and class counts are as published."""
        schema = self.layout(source.name)
        frame = self.parse(data, schema)
        self.check_frame(frame, schema)
        check_counts(frame[schema.label], source)

    def title_and_notes(self, parameters: P, prepared: PreparedTable) -> TitleAndNotes:
        """Return the title, and the notes of a report beside the policies."""
        return self.title, self.notes

    def layout(self, file: str) -> TableSchema:
        """Return the schema of a raw file."""
        return self.schema

    def parse(self, data: bytes, schema: TableSchema) -> pd.DataFrame:
        """Return the text cells of a raw file."""
        return parse_table(data, schema)

    def check_frame(self, frame: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
        """Return text cells as numbers, indexed by client_id."""
        return check_table(frame, schema, self.allowed)

    def load(self, file: str, path: Path) -> pd.DataFrame:
        """Return the checked table of the raw file at ``path``."""
        schema = self.layout(file)
        return self.check_frame(self.parse(read(path), schema), schema)

    def load_features(self, parameters: P, paths: Paths) -> Coded:
        """Return the checked table, and the schema of its features."""
        (file,) = self.files(parameters)
        return self.load(file, paths[file]), self.schema

    def load_clients(
        self, parameters: P, paths: Paths
    ) -> tuple[TableSchema, PreparedTable]:
        """Return the schema and the clients."""
        frame, schema = self.load_features(parameters, paths)
        policies = parameters.duplicates, parameters.missing
        return schema, prepare_clients(frame, schema, *policies)
