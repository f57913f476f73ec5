"""Rows of a user's table as numbers, a block at a time, with all violations."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.datasets.own import arrow_cells as cells
from curvote.datasets.own.arrow_cells import Floats, Integers
from curvote.datasets.own.given import Violations, convert_column, read_batches
from curvote.datasets.own.table_parameters import Parameters
from curvote.datasets.tables.features import (
    Feature,
    category_feature,
    indicator_features,
)
from curvote.datasets.tables.tabular import TableSchema
from curvote.errors import UserError

_DAY: Final = 86_400 * cells.MICROSECONDS
MARKS: Final = ("NA", "N/A", "NaN", "nan", "null", "?")  # beside empty cells


@dataclass(frozen=True, eq=False)
class TableBlock:
    """Rows of the file from ``begin`` on: ids (m,), features (m, p), codes."""

    begin: int
    ids: Integers
    values: Floats
    codes: Integers

    def select(self, chosen: slice | NDArray[np.bool_]) -> TableBlock:
        """Return some of the rows."""
        columns = self.ids[chosen], self.values[chosen], self.codes[chosen]
        begin = self.begin + (chosen.start or 0 if isinstance(chosen, slice) else 0)
        return TableBlock(begin, *columns)


class TableCells:
    """A pass over the table at ``path``, with its cells as numbers.

    Labels become codes in the order in which they are met, those that are listed first;
    ``label_codes`` holds their texts, and ``empty`` the rows without an id. What is
    wrong is counted in ``violations``.
    """

    def __init__(
        self, parameters: Parameters, path: Path, violations: Violations
    ) -> None:
        self.parameters, self.path, self.violations = parameters, path, violations
        self.label_codes = parameters.places
        self.empty: list[Integers] = []
        self._listed = len(self.label_codes)
        self._features = table_schema(parameters, ()).features

    def blocks(self) -> Iterator[TableBlock]:
        """Yield the rows; none at all is a UserError."""
        parameters, begin = self.parameters, 0
        wanted = [
            *parameters.features,
            parameters.label,
            *filter(None, [parameters.id]),
        ]
        for batch in read_batches(self.path, wanted, self.violations):
            columns = {name: cells.plain_column(batch[name]) for name in wanted}
            if len(batch):
                yield self._make_block(columns, begin)
            begin += len(batch)
        if not begin:
            raise UserError(f"{self.path} has no rows.")

    def ids(self) -> Iterator[Integers]:
        """Yield the ids alone, row numbers without a column of ids."""
        begin, column = 0, self.parameters.id or self.parameters.label
        for batch in read_batches(self.path, [column], self.violations):
            yield self._client_ids(
                {column: cells.plain_column(batch[column])}, len(batch), begin
            )
            begin += len(batch)
        if not begin:
            raise UserError(f"{self.path} has no rows.")

    def rows_with_ids(self, rows: Integers) -> Iterator[tuple[int, str]]:
        """Yield rows (ascending) with their written ids, for a message."""
        id_name, begin = str(self.parameters.id), 0
        for batch in read_batches(
            self.path, [id_name], Violations(self.path, self.parameters)
        ):
            column = cells.trim_ids(cells.plain_column(batch[id_name]))
            batch_rows = rows[(rows >= begin) & (rows < begin + len(batch))]
            yield from (
                (r + 1, repr(column[r - begin].as_py())) for r in batch_rows.tolist()
            )
            begin += len(batch)

    def _make_block(self, columns: dict[str, Any], begin: int) -> TableBlock:
        codes = self._labels(columns[self.parameters.label], begin)
        values = self.features(columns, begin)
        ids = self._client_ids(columns, len(codes), begin)
        return TableBlock(begin, ids, values, codes)

    def features(self, columns: dict[str, Any], begin: int = 0) -> Floats:
        """Return features (m, p) of rows, NaN where missing or of no use."""
        names = self.parameters.features
        return self._spread_categories(
            [self._feature_values(x, columns[x], begin) for x in names]
        )

    def _labels(self, column: Any, begin: int) -> Integers:
        """Return the codes of the labels, those listed as their places."""
        name = self.parameters.label
        codes = cells.encode_labels(
            column, self.label_codes, self._listed + cells.VOCABULARY
        )
        self._count_violation(f"{name} is empty", codes < 0, begin)
        if self._listed:
            what = f"{name} {self.parameters.unlisted_text}"
            self._count_violation(what, codes >= self._listed, begin, column)
        return codes

    def _feature_values(self, name: str, column: Any, begin: int) -> Floats:
        """Return a feature, NaN where it is missing: a number, or a category's code."""
        texts = sorted(self.parameters.categories.get(name, ()))
        if not texts:
            return self._feature_numbers(name, column, begin)
        column = self._null_missing(column, texts)
        codes = cells.encode_labels(
            column, {text: code for code, text in enumerate(texts)}
        )
        what = f"{name} is none of the categories {', '.join(texts)}"
        self._count_violation(what, codes >= len(texts), begin, column)
        return np.where(codes < 0, np.nan, codes)

    def _feature_numbers(self, name: str, column: Any, begin: int) -> Floats:
        """Return a feature, NaN where missing; count cells that are no number.

        A date is a number, too, where the source says how dates are written: days
        since 1970-01-01.
        """
        import pyarrow.compute as pc

        column, form = self._null_missing(column), self.parameters.dates.get(name)
        with convert_column(self.path, name, column):
            if form:
                values = cells.wall_clock(column, form) / _DAY
            else:
                values = cells.parse_numbers(column, self.parameters.decimal)
        is_number_text = np.asarray(pc.is_valid(column)) & cells.is_text(column)
        wrong = np.isinf(values) | (np.isnan(values) & is_number_text)
        what = f"a date like {form}" if form else "a finite number"
        self._count_violation(f"{name} is not {what}", wrong, begin, column)
        return values

    def _client_ids(self, columns: dict[str, Any], n: int, begin: int) -> Integers:
        column_name = self.parameters.id
        if column_name is None:
            return np.arange(begin + 1, begin + n + 1)
        column = cells.trim_ids(columns[column_name])
        empty = np.asarray(column.is_null())
        self.empty.append(np.flatnonzero(empty) + begin)
        self._count_violation(f"{column_name} is empty", empty, begin)
        with convert_column(self.path, column_name, column):
            id_column = column.fill_null("0" if cells.is_text(column) else 0)
            ids, _ = cells.identify(id_column)
        return ids

    def _null_missing(self, column: Any, meant: Collection[str] = ()) -> Any:
        """Return trimmed texts, null where one means missing; numbers as they are."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not cells.is_text(column):
            return column
        text, all_marks = (
            pc.utf8_trim_whitespace(column),
            self.parameters.missing_values,
        )
        marks = [mark for mark in (*MARKS, *all_marks) if mark not in meant]
        absent = pc.is_in(text, pa.array(marks, pa.string()))
        return cells.plain_column(pc.if_else(absent, None, text))

    def _spread_categories(self, values: list[Floats]) -> Floats:
        """Return features (m, p), a category as a 0 or 1 for each of its texts."""
        parts: list[Floats] = []
        for feature, codes in zip(self._features, values, strict=True):
            indicators = [
                np.where(np.isnan(codes), np.nan, codes == code)
                for code in range(len(feature.categories))
            ]
            parts += indicators or [codes]
        return np.column_stack(parts)

    def _count_violation(
        self, what: str, wrong: NDArray[np.bool_], begin: int, examples: Any = None
    ) -> None:
        rows = np.flatnonzero(wrong)
        texts = (
            (begin + row + 1, "" if examples is None else repr(examples[row].as_py()))
            for row in rows.tolist()
        )
        self.violations.add(what, len(rows), texts)


def table_schema(parameters: Parameters, classes: tuple[str, ...]) -> TableSchema:
    """Return the table's public layout, a text feature as its categories' codes."""
    why = "stated by the user"
    texts, bounds = parameters.categories, parameters.bounds
    return TableSchema(
        features=tuple(
            category_feature(x, texts[x], why)
            if x in texts
            else Feature(x, "", *bounds[x], why)
            for x in parameters.features
        ),
        label=parameters.label,
        labels={name: place for place, name in enumerate(classes)},
        classes=classes,
    )


def spread_schema(parameters: Parameters, classes: tuple[str, ...]) -> TableSchema:
    """Return the schema with a 0/1 feature for each category.

    A missing text is a bit of each of them: its public centre.
    """
    plain, shares = table_schema(parameters, classes), parameters.categories
    features = tuple(
        replace(feature, centre=1 / len(shares[f.name])) if f.categories else feature
        for f in plain.features
        for feature in (indicator_features(f) or (f,))
    )
    return replace(plain, features=features)
