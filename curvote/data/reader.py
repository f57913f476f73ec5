"""Reader of published tables: schema, checks, missing values and clients."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.base.table_file import MAX_LISTED
from curvote.chain.settings import Strict
from curvote.data import columns as frames
from curvote.data import raw_files
from curvote.data.columns import ClientColumns, Feature, Paths
from curvote.data.raw_files import read

if TYPE_CHECKING:
    import pandas as pd

    from curvote.data.raw_files import Source


@dataclass(frozen=True, eq=False)
class TableCounts:
    """Public counts of a table.

    ``rows`` and ``distinct`` count the whole file, ``missing`` the missing values of
    each feature after the duplicates policy, ``counts`` the clients of each class.
    """

    rows: int
    distinct: int
    missing: dict[str, int]
    counts: list[int]


Duplicates = Literal["distinct", "keep"]
Missing = Literal["centre", "drop", "keep"]

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
    file without header (default: the features, then the label). ``possible`` is what
    can be in each feature, wider than its public bounds: a value beyond those is
    clipped later, an impossible one is a violation. Without an entry, every finite
    number is possible.
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
    possible: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Return the names of the features."""
        return [feature.name for feature in self.features]

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

    def columns(self) -> ClientColumns:
        """Return client_id, label, group (n,) and curve (n, p); a group a client."""
        return frames.client_columns(self.features, self.labels, self.ids)


_MOST_LETTERS = 40  # of a cell that is shown
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
MISSING = "columns that are missing"
UNEXPECTED = "columns that are not expected"
Rules = Mapping[str, Any]  # the words that deny cells, and a mask of those (n,)


def parse_table(data: bytes, schema: TableSchema) -> pd.DataFrame:
    """Return the text cells of ``data`` (UTF-8, LF or CR LF), indexed by line number.

    Raises:
        UserError: no UTF-8, no rows, wrong separator, or rows of other lengths.
    """
    import pandas as pd

    try:
        text = io.StringIO(data.decode("utf-8-sig"), newline="")
        reader = csv.reader(text, delimiter=schema.separator, strict=True)
        rows = [(reader.line_num, fields) for fields in reader]
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"line {line} is no UTF-8 text: {error.reason}.") from error
    except csv.Error as error:
        raise UserError(f"line {reader.line_num}: {error}.") from error
    while rows and not rows[-1][1]:
        rows.pop()
    if not rows:
        raise UserError("it has no row.")
    names = rows.pop(0)[1] if schema.header else schema.columns
    if len(names) == 1:
        raise UserError(
            f"its header is one field, {_quote(names[0])}; fields are separated by"
            f" {schema.separator!r}."
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(f"its header has more than one column {', '.join(twice)}.")
    n = len(names)
    wrong = [f"line {at} has {len(row)}" for at, row in rows if len(row) != n]
    if wrong:
        raise UserError(
            f"rows without {n} fields separated by {schema.separator!r}:"
            f" {_join_examples(wrong)}."
        )
    lines = pd.Index([line for line, _ in rows], dtype="int64", name="line")
    texts = [fields for _, fields in rows]
    return pd.DataFrame(texts, columns=list(names), index=lines, dtype=str)


def check_table(frame: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
    """Return features as float64 (NaN = missing) and the label's class index.

    Raises:
        UserError: all violations at once: each kind with count, lines and examples.
    """
    values, label = {}, schema.label
    wrong: dict[str, Rules] = {name: {} for name in (*schema.names, label)}
    for feature in (x for x in schema.features if x.name in frame):
        checked = _check_cells(frame[feature.name], feature, schema)
        values[feature.name], wrong[feature.name] = checked
    if label in frame:
        unknown = ~frame[label].isin([*schema.labels])
        wrong[label] = {f"not one of {', '.join(schema.labels)}": unknown}
    kinds: dict[str, list[str]] = {}
    for violation in list_violations(frame, wrong, schema.ignored):
        kind, example = violation.rule, str(violation.column)
        if violation.line is not None:
            kind = f"{violation.column}, {violation.rule}"
            example = f"line {violation.line} {_quote(str(violation.value))}"
        kinds.setdefault(kind, []).append(example)
    if kinds:
        lines = [f"- {kind}: {_join_examples(some)}" for kind, some in kinds.items()]
        raise UserError("\n".join(["wrong table:", *lines]))
    places = frame[label].map(dict(schema.labels)).astype("int64")
    return type(frame)({**values, label: places})


def _check_cells(
    cells: pd.Series[str], feature: Feature, schema: TableSchema
) -> tuple[pd.Series[float], Rules]:
    """Return the numbers or category codes of cells, NaN for others; and the wrong."""
    marked, categories = cells.isin([*schema.marks]), feature.categories
    if categories:
        codes = {text: float(code) for code, text in enumerate(categories)}
        unknown = ~(cells.isin([*categories]) | marked)
        return cells.map(codes).astype("float64"), {
            f"not one of {', '.join(categories)}": unknown
        }
    written = cells.str.fullmatch(_NUMBER)
    values = cells.where(written & ~marked).map(float).astype("float64")
    absent = values.isna() | values.isin(feature.missing)
    inside: Any = np.isfinite(values)
    words = "infinite"
    if limits := schema.possible.get(feature.name):
        inside = values.between(*limits)
        words = "impossible (not in {:g} to {:g})".format(*limits)
    wrong = {"not a number": ~(written | marked), words: ~(absent | inside)}
    if feature.integral:
        integral = values.isna() | np.isinf(values) | (values % 1 == 0)
        wrong["not a whole number"] = ~integral
    return values, wrong


@dataclass(frozen=True)
class Violation:
    """A violated rule of a cell or, without a ``line``, of a column."""

    rule: str
    column: str
    line: int | None = None
    value: Any = None


def list_violations(
    frame: pd.DataFrame, wrong: Mapping[str, Rules], ignored: Sequence[str] = ()
) -> list[Violation]:
    """Return the violations: those of cells by line, then those of columns.

    ``wrong`` are the expected columns, and their cells that violate a rule. A line is
    the row's index. Columns beside those and the ``ignored`` ones are not expected.
    """
    wanted = [*wrong, *ignored]
    violations = [
        Violation(rule, name, int(str(line)), cell)
        for name, rules in wrong.items()
        for rule, mask in rules.items()
        for line, cell in frame[name][mask].items()
    ]
    violations.sort(key=lambda violation: violation.line or 0)
    strange = [Violation(UNEXPECTED, str(name)) for name in frame if name not in wanted]
    missing = [Violation(MISSING, name) for name in wanted if name not in frame]
    return [*violations, *strange, *missing]


def _join_examples(examples: Sequence[str]) -> str:
    more = len(examples) - MAX_LISTED
    tail = f", and {more} more" if more > 0 else ""
    return f"{len(examples)} ({', '.join(examples[:MAX_LISTED])}{tail})"


def _quote(text: str) -> str:
    return repr(text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}...")


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
    lacking, rows, settled = settle_missing(values, schema, missing)
    if missing == "keep":
        empty = np.isnan(values).sum(axis=0).tolist()
        refuse_empty_cells(dict(zip(schema.names, empty, strict=True)))
    if missing == "drop" and not rows.any():
        raise no_rows_error()
    labels = chosen[schema.label].to_numpy(dtype=np.int64)[rows]
    return PreparedTable(
        ids=chosen.index.to_numpy(dtype=np.int64)[rows],
        features=settled[rows],
        labels=labels,
        rows=len(frame),
        distinct=int(first.sum()),
        missing=dict(zip(schema.names, lacking.sum(axis=0).tolist(), strict=True)),
        counts=frames.class_counts(labels, schema.classes),
    )


def facts(
    schema: TableSchema,
    prepared: TableCounts,
    title: str,
    notes: Sequence[str],
    parameters: TableParameters,
) -> dict[str, Any]:
    """Return the public metadata of the clients as plain JSON values."""
    sizes = {"rows": prepared.rows, "distinct": prepared.distinct}
    repeats = prepared.rows - prepared.distinct
    missing = _format_counts(prepared.missing)
    repeated = _REPEATS[parameters.duplicates].format(repeats, prepared.rows)
    lacking = _MISSING[parameters.missing].format(missing)
    return frames.facts(
        prepared.counts,
        schema.classes,
        title=title,
        notes=[*notes, *([repeated] * bool(repeats) + [lacking] * bool(missing))],
        duplicates={"policy": parameters.duplicates, **sizes},
        missing={"policy": parameters.missing, "counts": prepared.missing},
        **frames.feature_facts(schema.features),
    )


def settle_missing(
    values: NDArray[np.float64], schema: TableSchema, missing: Missing
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64]]:
    """Return what is missing (n, p), which rows stay (n,), and the values (n, p).

    Missing values that are not kept have the public centre.
    """
    absent = np.isnan(values)
    for column, feature in enumerate(schema.features):
        if feature.missing:
            absent[:, column] |= np.isin(values[:, column], feature.missing)
    stay = np.full(len(values), True)
    if missing == "drop":
        stay = np.asarray(~absent.any(axis=1))
    if missing != "keep" and absent.any():
        centres = np.array([feature.middle for feature in schema.features])
        values = np.where(absent, centres, values)
    return absent, stay, values


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
        frame, _ = self.read(source.name, data)
        check_counts(frame[self.schema.label], source)

    def title_and_notes(self, parameters: P, prepared: PreparedTable) -> TitleAndNotes:
        """Return the title, and the notes of a report beside the policies."""
        return self.title, self.notes

    def layout(self, file: str) -> TableSchema:
        """Return the schema of a raw file."""
        return self.schema

    def read(self, file: str, data: bytes) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the text cells of a raw file, and its numbers by client_id."""
        schema = self.layout(file)
        frame = parse_table(data, schema)
        return frame, check_table(frame, schema)

    def load(self, file: str, path: Path) -> pd.DataFrame:
        """Return the checked table of the raw file at ``path``."""
        return self.read(file, read(path))[1]

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
