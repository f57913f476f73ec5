"""Published tables: from bytes to one feature vector a client, by a public schema.

``parse`` yields text cells, ``checked`` numbers, ``prepare`` settles duplicates and
missing values. Line numbers are those of the file, a header being line 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from curvote.chain.settings import Strict
from curvote.datasets import frames
from curvote.datasets.tables import table_cells
from curvote.datasets.tables.contract import Rule, broken
from curvote.datasets.tables.features import Feature
from curvote.datasets.tables.told import Told
from curvote.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from curvote.datasets.sources import Source

Duplicates = Literal["distinct", "keep"]
Missing = Literal["centre", "drop", "keep"]
Limits = Mapping[str, table_cells.Range]

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
    """What ``source:`` may say about any table: repeated rows and missing values."""

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
    def columns(self) -> list[str]:
        """Return the columns of a file without header, in their order."""
        return list(self.order) or [*self.names, self.label]


@dataclass(frozen=True, eq=False)
class Prepared:
    """Clients of a table: ``ids`` (n,), ``features`` (n, p), ``labels`` (n,), places.

    ``ids`` are line numbers of the file. ``rows`` and ``distinct`` count the whole
    file, ``missing`` the missing values of each feature after the duplicates policy.
    """

    ids: NDArray[np.int64]
    features: NDArray[np.float64]
    labels: NDArray[np.int64]
    rows: int
    distinct: int
    missing: dict[str, int]

    def by_class(self, classes: Sequence[str]) -> list[int]:
        """Return how many clients each class has."""
        return frames.count(self.labels, classes)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return client_id, label, group (n,) and curve (n, p); a group a client."""
        return frames.columns(self.features, self.labels, self.ids)


def parse(data: bytes, schema: TableSchema) -> pd.DataFrame:
    """Return the text cells of ``data`` (UTF-8, LF or CR LF), indexed by line number.

    Raises:
        UserError: no UTF-8, no rows, wrong separator, or rows of other lengths.
    """
    import pandas as pd

    rows = table_cells.records(data, schema.separator)
    names = rows.pop(0)[1] if schema.header else schema.columns
    table_cells.check_names(names, schema.separator)
    table_cells.check_lengths(rows, len(names), schema.separator)
    lines = pd.Index([line for line, _ in rows], dtype="int64", name="line")
    texts = [fields for _, fields in rows]
    return pd.DataFrame(texts, columns=list(names), index=lines, dtype=str)


def checked(frame: pd.DataFrame, schema: TableSchema, allowed: Limits) -> pd.DataFrame:
    """Return features as float64 (NaN = marked as missing) and the label as its place.

    ``allowed`` are the limits of what is possible in each feature, wider than its
    public bounds: a value beyond the bounds is clipped later, an impossible one is a
    violation. Without an entry, every finite number is possible.

    Raises:
        UserError: all violations at once: each kind with count, lines and examples.
    """
    found = broken(frame, _rules(schema, allowed), schema.ignored)
    if found:
        raise UserError(table_cells.explain(found))
    columns: dict[str, Any] = {
        feature.name: table_cells.coded(frame[feature.name], feature, schema.marks)
        for feature in schema.features
    }
    columns[schema.label] = frame[schema.label].map(dict(schema.labels)).astype("int64")
    return type(frame)(columns)


def check_counts(labels: Iterable[str], source: Source) -> None:
    """Raise a UserError unless there are ``source.rows`` labels, ``counts`` of each."""
    found = Counter(labels)
    given = found.total()
    rows = f"{given} rows instead of {source.rows}"
    problems = [rows] * (given != source.rows) + [
        f"{label} {found[label]} instead of {source.counts.get(label, 0)}"
        for label in sorted({*source.counts, *found})
        if found[label] != source.counts.get(label, 0)
    ]
    if problems:
        raise UserError(f"wrong counts: {', '.join(problems)}.")


def prepare(
    frame: pd.DataFrame, schema: TableSchema, duplicates: Duplicates, missing: Missing
) -> Prepared:
    """Return the clients of a ``checked`` table.

    ``distinct`` keeps the first of identical rows (features and label). ``centre``
    fills the public centre, ``drop`` leaves rows with a missing value out, ``keep``
    keeps the publisher's number.

    Raises:
        UserError: ``keep`` where a cell is empty, or ``drop`` where no row is left.
    """
    first = ~frame.duplicated().to_numpy()
    chosen = frame[first] if duplicates == "distinct" else frame
    values = chosen[schema.names].to_numpy(dtype=np.float64)
    lacking = absent(values, schema)
    rows = ~lacking.any(axis=1) if missing == "drop" else np.full(len(values), True)
    return Prepared(
        ids=chosen.index.to_numpy(dtype=np.int64)[rows],
        features=_settled(values, lacking, schema, missing)[rows],
        labels=chosen[schema.label].to_numpy(dtype=np.int64)[rows],
        rows=len(frame),
        distinct=int(first.sum()),
        missing=dict(zip(schema.names, lacking.sum(axis=0).tolist(), strict=True)),
    )


def facts(
    schema: TableSchema,
    prepared: Told,
    title: str,
    notes: Sequence[str],
    parameters: TableParameters,
) -> dict[str, Any]:
    """Return what is public about the clients, as plain JSON values."""
    p = len(schema.features)
    both = {"rows": prepared.rows, "distinct": prepared.distinct}
    return frames.facts(
        prepared.by_class(schema.classes),
        schema.classes,
        title=title,
        grid=list(range(p)),
        domain=[0, p - 1],
        unit="feature",
        notes=[*notes, *_notes(prepared, parameters)],
        features=[feature.to_json() for feature in schema.features],
        duplicates={"policy": parameters.duplicates, **both},
        missing={"policy": parameters.missing, "counts": prepared.missing},
    )


def _rules(schema: TableSchema, allowed: Limits) -> dict[str, dict[str, Rule]]:
    """Return what must hold of each column: of the features, then of the label."""
    columns = {
        feature.name: table_cells.rules(
            feature, schema.marks, allowed.get(feature.name)
        )
        for feature in schema.features
    }
    return columns | {schema.label: table_cells.one_of(schema.labels)}


def absent(values: NDArray[np.float64], schema: TableSchema) -> NDArray[np.bool_]:
    """Say which values (n, p) are missing."""
    found = np.isnan(values)
    for column, feature in enumerate(schema.features):
        if feature.missing:
            found[:, column] |= np.isin(values[:, column], feature.missing)
    return found


def _settled(
    values: NDArray[np.float64],
    lacking: NDArray[np.bool_],
    schema: TableSchema,
    missing: Missing,
) -> NDArray[np.float64]:
    if missing == "keep":
        empty = np.isnan(values).sum(axis=0).tolist()
        refuse_empty(dict(zip(schema.names, empty, strict=True)))
    if missing == "drop" and lacking.any(axis=1).all():
        raise no_row()
    return settled(values, lacking, schema, missing)


def settled(
    values: NDArray[np.float64],
    lacking: NDArray[np.bool_],
    schema: TableSchema,
    missing: Missing,
) -> NDArray[np.float64]:
    """Return values (n, p), the public centre where one is ``lacking`` and not kept."""
    if missing == "keep" or not lacking.any():
        return values
    centres = np.array([feature.middle for feature in schema.features])
    return np.where(lacking, centres, values)


def no_row() -> UserError:
    """Return the error for a policy that leaves nobody."""
    return UserError("missing: drop leaves no row; every row lacks a value.")


def refuse_empty(empty: Mapping[str, int]) -> None:
    """Refuse (UserError) to keep cells that hold no number, counted by feature."""
    if any(empty.values()):
        raise UserError(
            f"missing: keep, but cells hold no number: {_counted(empty)}. Only a number"
            " that means missing can be kept; write missing: centre or missing: drop."
        )


def _notes(prepared: Told, parameters: TableParameters) -> list[str]:
    repeats = prepared.rows - prepared.distinct
    missing = _counted(prepared.missing)
    repeated = _REPEATS[parameters.duplicates].format(repeats, prepared.rows)
    lacking = _MISSING[parameters.missing].format(missing)
    return [repeated] * bool(repeats) + [lacking] * bool(missing)


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.items() if n)
