"""A user's table as numbers, a block of rows at a time, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.datasets.own import arrow_cells as cells
from curvote.datasets.own.arrow_cells import Floats, Integers
from curvote.datasets.own.given import Violations, batches, usable
from curvote.datasets.own.table_parameters import Parameters
from curvote.datasets.tables.features import Feature, category, indicators
from curvote.datasets.tables.tabular import TableSchema
from curvote.errors import UserError

_DAY: Final = 86_400 * cells.MICROSECONDS
MARKS: Final = ("NA", "N/A", "NaN", "nan", "null", "?")  # beside empty cells


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of the file from ``begin`` on: ids (m,), features (m, p), label codes."""

    begin: int
    ids: Integers
    values: Floats
    codes: Integers

    def part(self, chosen: slice | NDArray[np.bool_]) -> Block:
        """Return some of the rows."""
        own = self.ids[chosen], self.values[chosen], self.codes[chosen]
        begin = self.begin + (chosen.start or 0 if isinstance(chosen, slice) else 0)
        return Block(begin, *own)


class Cells:
    """One pass over the table at ``path``, its cells as numbers.

    Labels become codes in the order in which they are met, those that are listed first;
    ``known`` holds their texts, and ``empty`` the rows without an id. What is wrong is
    counted in ``violations``.
    """

    def __init__(self, given: Parameters, path: Path, violations: Violations) -> None:
        self.given, self.path, self.violations = given, path, violations
        self.known = given.places
        self.empty: list[Integers] = []
        self._listed = len(self.known)
        self._features = schema(given, ()).features

    def blocks(self) -> Iterator[Block]:
        """Yield the rows; none at all is a UserError."""
        given, begin = self.given, 0
        wanted = [*given.features, given.label, *filter(None, [given.id])]
        for batch in batches(self.path, wanted, self.violations):
            columns = {name: cells.plain(batch[name]) for name in wanted}
            if len(batch):
                yield self._block(columns, begin)
            begin += len(batch)
        if not begin:
            raise UserError(f"{self.path} has no rows.")

    def ids(self) -> Iterator[Integers]:
        """Yield the ids alone; without a column of them, the numbers of the rows."""
        begin, own = 0, self.given.id or self.given.label
        for batch in batches(self.path, [own], self.violations):
            yield self._ids({own: cells.plain(batch[own])}, len(batch), begin)
            begin += len(batch)
        if not begin:
            raise UserError(f"{self.path} has no rows.")

    def shown(self, rows: Integers) -> Iterator[tuple[int, str]]:
        """Yield rows (rising) with their ids as they stand there, for a message."""
        own, begin = str(self.given.id), 0
        for batch in batches(self.path, [own], Violations(self.path, self.given)):
            column = cells.trimmed(cells.plain(batch[own]))
            here = rows[(rows >= begin) & (rows < begin + len(batch))]
            yield from ((r + 1, repr(column[r - begin].as_py())) for r in here.tolist())
            begin += len(batch)

    def _block(self, columns: dict[str, Any], begin: int) -> Block:
        codes = self._labels(columns[self.given.label], begin)
        values = self.features(columns, begin)
        ids = self._ids(columns, len(codes), begin)
        return Block(begin, ids, values, codes)

    def features(self, columns: dict[str, Any], begin: int = 0) -> Floats:
        """Return features (m, p) of rows, NaN where missing or of no use."""
        names = self.given.features
        return self._spread([self._values(x, columns[x], begin) for x in names])

    def _labels(self, column: Any, begin: int) -> Integers:
        """Return the codes of the labels, those listed as their places."""
        name = self.given.label
        codes = cells.labels(column, self.known, self._listed + cells.VOCABULARY)
        self._count(f"{name} is empty", codes < 0, begin)
        if self._listed:
            what = f"{name} {self.given.none_of_them}"
            self._count(what, codes >= self._listed, begin, column)
        return codes

    def _values(self, name: str, column: Any, begin: int) -> Floats:
        """Return a feature, NaN where it is missing: a number, or a category's code."""
        texts = sorted(self.given.categories.get(name, ()))
        if not texts:
            return self._numbers(name, column, begin)
        column = self._unmarked(column, texts)
        codes = cells.labels(column, {text: code for code, text in enumerate(texts)})
        what = f"{name} is none of the categories {', '.join(texts)}"
        self._count(what, codes >= len(texts), begin, column)
        return np.where(codes < 0, np.nan, codes)

    def _numbers(self, name: str, column: Any, begin: int) -> Floats:
        """Return a feature, NaN where missing; count cells that are no number.

        A date is a number, too, where the source says how dates are written: days
        since 1970-01-01.
        """
        import pyarrow.compute as pc

        column, form = self._unmarked(column), self.given.dates.get(name)
        with usable(self.path, name, column):
            if form:
                values = cells.wall_clock(column, form) / _DAY
            else:
                values = cells.numbers(column, self.given.decimal)
        said = np.asarray(pc.is_valid(column)) & cells.is_text(column)
        wrong = np.isinf(values) | (np.isnan(values) & said)
        what = f"a date like {form}" if form else "a finite number"
        self._count(f"{name} is not {what}", wrong, begin, column)
        return values

    def _ids(self, columns: dict[str, Any], n: int, begin: int) -> Integers:
        own = self.given.id
        if own is None:
            return np.arange(begin + 1, begin + n + 1)
        column = cells.trimmed(columns[own])
        empty = np.asarray(column.is_null())
        self.empty.append(np.flatnonzero(empty) + begin)
        self._count(f"{own} is empty", empty, begin)
        with usable(self.path, own, column):
            given = column.fill_null("0" if cells.is_text(column) else 0)
            ids, _ = cells.identities(given)
        return ids

    def _unmarked(self, column: Any, meant: Collection[str] = ()) -> Any:
        """Return trimmed texts, null where one means missing; numbers as they are."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not cells.is_text(column):
            return column
        text, all_marks = pc.utf8_trim_whitespace(column), self.given.missing_values
        marks = [mark for mark in (*MARKS, *all_marks) if mark not in meant]
        absent = pc.is_in(text, pa.array(marks, pa.string()))
        return cells.plain(pc.if_else(absent, None, text))

    def _spread(self, values: list[Floats]) -> Floats:
        """Return features (m, p), a category as a 0 or 1 for each of its texts."""
        made: list[Floats] = []
        for feature, codes in zip(self._features, values, strict=True):
            own = [
                np.where(np.isnan(codes), np.nan, codes == code)
                for code in range(len(feature.categories))
            ]
            made += own or [codes]
        return np.column_stack(made)

    def _count(
        self, what: str, wrong: NDArray[np.bool_], begin: int, shown: Any = None
    ) -> None:
        rows = np.flatnonzero(wrong)
        texts = (
            (begin + row + 1, "" if shown is None else repr(shown[row].as_py()))
            for row in rows.tolist()
        )
        self.violations.add(what, len(rows), texts)


def schema(given: Parameters, classes: tuple[str, ...]) -> TableSchema:
    """Return the table's public layout, a text feature as its categories' codes."""
    why = "stated by the user"
    texts, bounds = given.categories, given.bounds
    return TableSchema(
        features=tuple(
            category(x, texts[x], why)
            if x in texts
            else Feature(x, "", *bounds[x], why)
            for x in given.features
        ),
        label=given.label,
        labels={name: place for place, name in enumerate(classes)},
        classes=classes,
    )


def spread(given: Parameters, classes: tuple[str, ...]) -> TableSchema:
    """Return the layout with a 0 or 1 for each category.

    A missing text is a bit of each of them: its public centre.
    """
    plain, shares = schema(given, classes), given.categories
    features = tuple(
        replace(own, centre=1 / len(shares[f.name])) if f.categories else own
        for f in plain.features
        for own in (indicators(f) or (f,))
    )
    return replace(plain, features=features)
