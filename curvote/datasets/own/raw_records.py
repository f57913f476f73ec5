"""How raw records become the numbers of a model: a source without its file.

A model carries it, so that it reads the same table as its training did. Cells become
numbers by the code that training has, missing ones by the source's own rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.datasets.own import arrow_cells as cells
from curvote.datasets.own import long_parameters, table_parameters
from curvote.datasets.own.arrow_cells import Integers
from curvote.datasets.own.given import (
    CsvForm,
    Violations,
    batches,
    kind,
    label_text,
    lines_of,
    names_in,
)
from curvote.datasets.own.long_rows import Reader, Rows
from curvote.datasets.own.long_scan import Scan
from curvote.datasets.own.table_rows import Cells, spread
from curvote.errors import UserError
from curvote.named_columns import Taken, chosen
from curvote.table_file import category

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from curvote.chain.view import View

Parameters = table_parameters.Parameters | long_parameters.Parameters

_HERE: Final = Path("the records given")  # instead of a file, in messages
_EPOCH: Final = date(1970, 1, 1)
_ANY: Final = (0.0, 1.0)  # bounds of what needs none to be read
_REMOTE: Final = ("remote_table", "remote_labels")


class RawRecords:
    """The form of raw records: columns, categories, missing values, how a file is read.

    ``source`` is what pipelines.yaml says, without the file's place; ``fill`` is the
    number that stands for a missing one, for each of those that have one. A row with
    any other missing value, or a cell of no use, has no answer.
    """

    def __init__(self, source: dict[str, Any], fill: dict[str, float]) -> None:
        self.source = source
        self.fill = fill

    @classmethod
    def of(cls, view: View) -> RawRecords | None:
        """Return the form of a cell's source; None: its records are but numbers."""
        source = view.settings.source
        name, place = source["name"], {"path": str(_HERE)}
        if name == "curves":
            curves = long_parameters.Parameters.model_validate({**source, **place})
            return cls(_plain(curves), {})
        if name not in {"table", *_REMOTE}:
            return None
        section = _as_table(source) if name in _REMOTE else {**source}
        given = table_parameters.Parameters.model_validate(section | place)
        fill: dict[str, float] = {}
        if name == "remote_labels":  # a missing text is none of its categories
            texts = given.categories  # in the source's order, as its numbers are
            names = [name for x in given.features for name in _spread(x, texts)]
            known = view.columns("ingest", "clients")["curve"]
            fill = dict(zip(names, known.mean(axis=0).tolist(), strict=True))
            fill |= {name: 0.0 for x in texts for name in _spread(x, texts)}
        elif given.missing == "centre":
            features = spread(given, ()).features
            fill = {feature.name: float(feature.middle) for feature in features}
        return cls(_plain(given), fill)

    @property
    def raw(self) -> list[str]:
        """The columns that records have, beside any others."""
        given = self._given
        if isinstance(given, long_parameters.Parameters):
            return [given.id, given.time, given.value]
        return list(given.features)

    def example(self) -> dict[str, Any]:
        """Return a row of nobody: the middle of public bounds, a first category."""
        given = self._given
        if isinstance(given, long_parameters.Parameters):
            middle = sum(given.bounds) / 2
            return {given.id: "a", given.time: given.grid.start, given.value: middle}
        row: dict[str, Any] = {x: known[0] for x, known in given.categories.items()}
        row |= {x: sum(ends) / 2 for x, ends in given.bounds.items()}
        for name, form in given.dates.items():
            row[name] = (_EPOCH + timedelta(days=row[name])).strftime(form)
        return {name: row[name] for name in given.features}

    def file(self, path: Path) -> pd.DataFrame:
        """Return the table at ``path``, in the source's own writing, as it stands.

        The index counts lines (CSV, whose first is the header) or rows (Parquet).
        UserError: it cannot be read, or has no row.
        """
        import pandas as pd
        import pyarrow as pa

        form = self.writing
        violations = Violations(path, form)
        found = [*batches(path, [x for x in names_in(path, form) if x], violations)]
        violations.check()
        if not sum(map(len, found)):
            raise UserError(f"{path} has no rows.")
        frame: pd.DataFrame = pa.Table.from_batches(found).to_pandas()
        rows = range(1, len(frame) + 1)
        if kind(path) == "parquet":
            frame.index = pd.Index(rows, name="row")
        else:
            lines = lines_of(path, form, rows)
            frame.index = pd.Index([lines[row] for row in rows], name="line")
        return frame

    @property
    def writing(self) -> CsvForm:
        """How a CSV file of the source is written."""
        return self._given

    def read(self, X: pd.DataFrame, columns: list[str]) -> Taken:
        """Return the numbers of records as the model's ``columns`` have them.

        UserError: a column is missing; of curves, a row that is of no use.
        """
        table = chosen(X, self.raw)
        given = self._given
        column = {name: _arrow(table[name], given.decimal) for name in self.raw}
        if isinstance(given, long_parameters.Parameters):
            return _curves(given, column)
        rows = _Rows(given, _HERE, Violations(_HERE, given))
        values = rows.features(column)
        names = [feature.name for feature in spread(given, ()).features]
        filling = np.array([self.fill.get(name, np.nan) for name in names])
        values = np.where(np.isnan(values), filling, values)
        wrong = np.any([*rows.wrong.values(), np.zeros(len(values), bool)], axis=0)
        lacking = np.isnan(values) & ~wrong[:, np.newaxis]
        reasons = dict(rows.wrong)
        for name in given.features:
            own = [names.index(each) for each in _spread(name, given.categories)]
            absent = lacking[:, own].any(axis=1)
            reasons |= {f"{name} is missing": absent} if absent.any() else {}
        used = ~(wrong | lacking.any(axis=1))
        of = np.where(used, np.cumsum(used) - 1, -1)
        order = [names.index(name) for name in columns]
        return Taken(values[used][:, order], of, reasons)

    @property
    def _given(self) -> Parameters:
        if self.source["name"] == "curves":
            return long_parameters.Parameters.model_validate(self.source)
        return table_parameters.Parameters.model_validate(self.source)


class _Rows(Cells):
    """Cells that keep which rows hold something of no use, and what."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.wrong: dict[str, NDArray[np.bool_]] = {}

    def _count(
        self, what: str, wrong: NDArray[np.bool_], begin: int, shown: Any = None
    ) -> None:
        if wrong.any():
            self.wrong[what] = wrong


class _Given(Reader):
    """Rows of a long table that is in memory."""

    columns: tuple[Any, ...] = ()

    def _parts(self) -> Iterator[Rows]:
        yield self._parse(*self.columns)
        self.rows += len(self.columns[0])


def _curves(given: long_parameters.Parameters, column: dict[str, Any]) -> Taken:
    """Return a curve for each client, and for each measurement the curve it is of."""
    import pyarrow as pa

    first, n = (given.classes or ("any", "other"))[0], len(column[given.id])
    if not n:
        return Taken(np.empty((0, given.grid.points)), np.empty(0, np.int64), {})
    listed = {"classes": given.classes or (first, "other"), "positive": None}
    scan = Scan(given.model_copy(update=listed), _HERE)
    own = scan.reader
    reader = _Given(_HERE, own.names, scan.violations, own.known, own.written)
    reader.columns = (*column.values(), pa.array([first] * n))
    scan.reader = reader
    blocks = [*scan.blocks()]
    values = np.concatenate([block.segments.on(given.points) for block in blocks])
    known = np.concatenate([block.ids for block in blocks])
    mine = cells.identities(cells.trimmed(column[given.id]))[0]
    order = np.argsort(known)
    places = order[np.minimum(np.searchsorted(known[order], mine), len(known) - 1)]
    of: Integers = np.where(known[places] == mine, places, -1)
    left = f"a gap above {given.gaps.most:g} {given.unit}, or an end not reached"
    return Taken(values, of, {left: of < 0} if (of < 0).any() else {})


def _spread(name: str, categories: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names of the numbers that a feature becomes."""
    return [category(name, text) for text in categories.get(name, ())] or [name]


def _plain(given: Parameters) -> dict[str, Any]:
    """Return parameters as plain JSON values."""
    return given.model_dump(mode="json", exclude_none=True)


def _as_table(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return a source of records elsewhere as one of a table that is here."""
    features, texts = source["features"], source.get("categories", {})
    unbounded = {x: _ANY for x in features if x not in texts}
    return {
        "name": "table",
        "label": "\n",  # a column that nobody has: words of these are printable
        "features": [*features],
        "categories": texts,
        "bounds": features if isinstance(features, Mapping) else unbounded,
        "missing": "drop",
        "classes": source["classes"],
    }


def _arrow(column: pd.Series[Any], decimal: str) -> Any:
    """Return a column as Arrow has it; what is of several kinds as a file's texts."""
    import pyarrow as pa

    def text(cell: Any) -> str:
        shown = str(label_text(cell))
        return shown.replace(".", decimal) if isinstance(cell, float) else shown

    try:
        made = pa.Array.from_pandas(column)
    except (pa.ArrowException, TypeError):
        made = pa.Array.from_pandas(column.map(text, na_action="ignore"))
    if isinstance(made, pa.ChunkedArray):
        made = made.combine_chunks()
    if pa.types.is_null(made.type):
        made = made.cast(pa.string())
    return cells.plain(made)
