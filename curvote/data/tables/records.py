"""Raw records as inputs of a model: a source's form without its file.

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

from curvote.base import table_file
from curvote.base.errors import UserError
from curvote.curves.columns import TableValues, select_columns
from curvote.data.columns import label_text
from curvote.data.lookup import own_settings
from curvote.data.tables import cells, curves, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from curvote.chain.system import View


Parameters = table.Parameters | curves.Parameters

_GIVEN_RECORDS: Final = Path("the records given")  # instead of a file, in messages
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
        """Return the form of a cell's source; None: records are numbers."""
        source = {**own_settings(view.settings.source)}
        name, place = source["name"], {"path": str(_GIVEN_RECORDS)}
        if name == "curves":
            form = curves.Parameters.model_validate({**source, **place})
            return cls(_to_plain(form), {})
        if name not in {"table", *_REMOTE}:
            return None
        section = _as_table(source) if name in _REMOTE else {**source}
        parameters = table.Parameters.model_validate(section | place)
        fill: dict[str, float] = {}
        if name == "remote_labels":  # a missing text is none of its categories
            texts = parameters.categories  # in the source's order, as its numbers are
            plain = parameters.features
            names = [name for x in plain for name in _number_names(x, texts)]
            curve = view.columns("ingest", "clients")["curve"]
            fill = dict(zip(names, curve.mean(axis=0).tolist(), strict=True))
            fill |= {name: 0.0 for x in texts for name in _number_names(x, texts)}
        elif parameters.missing == "centre":
            features = table.spread_schema(parameters, ()).features
            fill = {feature.name: float(feature.middle) for feature in features}
        return cls(_to_plain(parameters), fill)

    @property
    def raw(self) -> list[str]:
        """The columns of raw records."""
        parameters = self._parameters
        if isinstance(parameters, curves.Parameters):
            return [parameters.id, parameters.time, *parameters.values]
        return list(parameters.features)

    def types(self) -> dict[str, str]:
        """Return MLflow's type of each raw column; a time may be a date-time's text."""
        parameters = self._parameters
        if isinstance(parameters, curves.Parameters):
            time = "string" if parameters.unit in curves.SECONDS else "double"
            values = dict.fromkeys(parameters.values, "double")
            return {parameters.id: "string", parameters.time: time} | values
        texts = {*parameters.categories, *parameters.dates}
        return {x: "string" if x in texts else "double" for x in parameters.features}

    def example(self) -> dict[str, list[Any]]:
        """Return an invented record, by column: mid bounds, first categories.

        Of curves it is one that fills the public grid, a wave about the middle.
        """
        parameters = self._parameters
        if isinstance(parameters, curves.Parameters):
            times, (lows, highs) = parameters.points, parameters.ends
            wave = np.sin(np.linspace(0, 2 * np.pi, len(times)))
            moments: list[Any] = times.tolist()
            if form := parameters.dates:
                import pandas as pd

                seconds = curves.SECONDS[parameters.unit] * times
                moments = pd.to_datetime(seconds, unit="s").strftime(form).tolist()
            record = {parameters.id: ["a"] * len(times), parameters.time: moments}
            for name, low, high in zip(parameters.values, lows, highs, strict=True):
                middle, swing = (low + high) / 2, (high - low) / 4
                record[name] = (middle + swing * wave).tolist()
            return record
        row: dict[str, Any] = {x: of[0] for x, of in parameters.categories.items()}
        row |= {x: sum(ends) / 2 for x, ends in parameters.bounds.items()}
        for name, form in parameters.dates.items():
            row[name] = (_EPOCH + timedelta(days=row[name])).strftime(form)
        return {name: [row[name]] for name in parameters.features}

    def file(self, path: Path) -> pd.DataFrame:
        """Return the table at ``path`` in the source's own writing.

        The index counts lines (CSV, whose first is the header) or rows (Parquet).
        UserError: it cannot be read, or has no row.
        """
        import pandas as pd
        import pyarrow as pa

        form = self.writing
        violations = table_file.Violations(path, form)
        names = [name for name in table_file.column_names(path, form) if name]
        row_batches = [*table_file.read_batches(path, names, violations)]
        violations.check()
        if not sum(map(len, row_batches)):
            raise UserError(f"{path} has no rows.")
        frame: pd.DataFrame = pa.Table.from_batches(row_batches).to_pandas()
        rows = range(1, len(frame) + 1)
        if table_file.file_kind(path) == "parquet":
            frame.index = pd.Index(rows, name="row")
        else:
            lines = table_file.row_lines(path, form, rows)
            frame.index = pd.Index([lines[row] for row in rows], name="line")
        return frame

    @property
    def writing(self) -> table_file.CsvForm:
        """The writing of the source's CSV files."""
        return self._parameters

    def read(self, X: pd.DataFrame, columns: list[str]) -> TableValues:
        """Return the numbers of records as the model's ``columns`` have them.

        UserError: a column is missing; of curves, a row that is of no use.
        """
        raw = select_columns(X, self.raw)
        parameters = self._parameters
        column = {name: _to_arrow(raw[name], parameters.decimal) for name in self.raw}
        if isinstance(parameters, curves.Parameters):
            return _read_curves(parameters, column)
        violations = table_file.Violations(_GIVEN_RECORDS, parameters)
        rows = _MarkedCells(parameters, _GIVEN_RECORDS, violations)
        values = rows.features(column)
        names = [
            feature.name for feature in table.spread_schema(parameters, ()).features
        ]
        filling = np.array([self.fill.get(name, np.nan) for name in names])
        values = np.where(np.isnan(values), filling, values)
        wrong = np.any([*rows.wrong.values(), np.zeros(len(values), bool)], axis=0)
        lacking = np.isnan(values) & ~wrong[:, np.newaxis]
        reasons = dict(rows.wrong)
        for name in parameters.features:
            numbers = _number_names(name, parameters.categories)
            positions = [names.index(number) for number in numbers]
            absent = lacking[:, positions].any(axis=1)
            reasons |= {f"{name} is missing": absent} if absent.any() else {}
        used = ~(wrong | lacking.any(axis=1))
        of = np.where(used, np.cumsum(used) - 1, -1)
        order = [names.index(name) for name in columns]
        return TableValues(values[used][:, order], of, reasons)

    @property
    def _parameters(self) -> Parameters:
        if self.source["name"] == "curves":
            return curves.Parameters.model_validate(self.source)
        return table.Parameters.model_validate(self.source)


class _MarkedCells(table.TableCells):
    """Cells that keep which rows hold something of no use, and what."""

    def __init__(self, *parameters: Any) -> None:
        super().__init__(*parameters)
        self.wrong: dict[str, NDArray[np.bool_]] = {}

    def _count_violation(
        self, what: str, wrong: NDArray[np.bool_], begin: int, examples: Any = None
    ) -> None:
        if wrong.any():
            self.wrong[what] = wrong


class _MemoryReader(curves.LongReader):
    """Rows of a long table that is in memory."""

    columns: tuple[Any, ...] = ()

    def _read_parts(self) -> Iterator[curves.LongRows]:
        yield self._parse_part(*self.columns)
        self.rows += len(self.columns[0])


def _read_curves(parameters: curves.Parameters, column: dict[str, Any]) -> TableValues:
    """Return a curve for each client, and each row's curve index."""
    import pyarrow as pa

    first, n = (parameters.classes or ("any", "other"))[0], len(column[parameters.id])
    if not n:
        empty = np.empty((0, curves.width(parameters)))
        return TableValues(empty, np.empty(0, np.int64), {})
    listed = {"classes": parameters.classes or (first, "other"), "positive": None}
    scan = curves.LongScan(parameters.model_copy(update=listed), _GIVEN_RECORDS)
    reader = _MemoryReader(_GIVEN_RECORDS, scan.parameters, scan.violations)
    reader.columns = (*column.values(), pa.array([first] * n))
    scan.reader = reader
    blocks = [*scan.blocks()]
    values = np.concatenate([block.segments.on_grid(parameters) for block in blocks])
    usable_ids = np.concatenate([block.ids for block in blocks])
    client_ids = cells.identify(cells.trim_ids(column[parameters.id]))[0]
    order = np.argsort(usable_ids)
    ranks = np.searchsorted(usable_ids[order], client_ids)
    places = order[np.minimum(ranks, len(usable_ids) - 1)]
    of: cells.Integers = np.where(usable_ids[places] == client_ids, places, -1)
    reason = (
        f"a gap above {parameters.gaps.most:g} {parameters.unit}, or an end not reached"
    )
    return TableValues(values, of, {reason: of < 0} if (of < 0).any() else {})


def _number_names(name: str, categories: Mapping[str, Sequence[str]]) -> list[str]:
    return [
        table_file.indicator_name(name, text) for text in categories.get(name, ())
    ] or [name]


def _to_plain(parameters: Parameters) -> dict[str, Any]:
    return parameters.model_dump(mode="json", exclude_none=True)


def _as_table(source: Mapping[str, Any]) -> dict[str, Any]:
    features, private = source["features"], source.get("private", {})
    texts = source.get("categories", {}) | private
    unbounded = {x: _ANY for x in features if x not in texts}
    return {
        "name": "table",
        "label": "\n",  # a column that nobody has: words of these are printable
        "features": [*features, *private],
        "categories": texts,
        "bounds": features if isinstance(features, Mapping) else unbounded,
        "missing": "drop",
        "classes": source["classes"],
    }


def _to_arrow(column: pd.Series[Any], decimal: str) -> Any:
    """Return a column as Arrow has it; what is of several kinds as a file's texts."""
    import pyarrow as pa

    def cell_text(cell: Any) -> str:
        text = str(label_text(cell))
        return text.replace(".", decimal) if isinstance(cell, float) else text

    try:
        array = pa.Array.from_pandas(column)
    except (pa.ArrowException, TypeError):
        array = pa.Array.from_pandas(column.map(cell_text, na_action="ignore"))
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_null(array.type):
        array = array.cast(pa.string())
    return cells.plain_column(array)
