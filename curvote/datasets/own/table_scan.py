"""Two passes over a user's table of any size: a survey, then its clients.

The first pass tells what must be known of the whole: what is wrong with it, its
classes, which rows repeat an earlier one, how many values are missing. The second one
settles a block of rows after the other. Of each row 24 bytes are held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from curvote.datasets import frames
from curvote.datasets.own import labelled
from curvote.datasets.own.arrow_cells import SPELT, Integers
from curvote.datasets.own.given import EXAMPLES, Violations
from curvote.datasets.own.repeated import RepeatedRows
from curvote.datasets.own.spans import ColumnSpans
from curvote.datasets.own.table_parameters import Parameters
from curvote.datasets.own.table_rows import TableBlock, TableCells, spread_schema
from curvote.datasets.tables import tabular
from curvote.datasets.tables.tabular import TableSchema

Bits = NDArray[np.bool_]
Columns = dict[str, NDArray[np.int64] | NDArray[np.float64]]
CLIENTS: Final = 65_536


@dataclass(frozen=True, eq=False)
class TableSurvey:
    """The counts of a whole table file.

    ``first`` (rows,) are the rows that repeat no earlier one; None where that is no
    question. ``counts`` are the clients of each class, ``missing`` the values that each
    feature lacks before rows are left out for it, ``labels`` the texts by code, and
    ``spans`` how the features' values lie within their bounds.
    """

    schema: TableSchema
    rows: int
    distinct: int
    first: Bits | None
    counts: dict[str, int]
    missing: dict[str, int]
    labels: tuple[str, ...]
    spans: ColumnSpans

    def by_class(self, classes: Sequence[str]) -> list[int]:
        """Return how many clients each class has."""
        return [self.counts.get(name, 0) for name in classes]


def survey_table(parameters: Parameters, path: Path) -> TableSurvey:
    """Return the survey of the file at ``path``; UserError: violations.

    A file that stays the same is read once.
    """
    stat = path.stat()
    stamp = (stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    return _cached_survey(_Hashable(parameters), path, stamp)


class _Hashable:
    """Parameters by their text: their mappings have no hash."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self._text = parameters.model_dump_json()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashable) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


@lru_cache(maxsize=1)
def _cached_survey(
    wanted: _Hashable, path: Path, _stamp: tuple[int, ...]
) -> TableSurvey:
    parameters, violations = wanted.parameters, Violations(path, wanted.parameters)
    table, repeated, ids = (
        TableCells(parameters, path, violations),
        RepeatedRows(),
        _SeenIds(),
    )
    total = _tally_blocks(_note_repeats(table.blocks(), repeated, ids), parameters)
    ids.check(table)
    names = labelled.resolve_classes(
        violations, parameters.label, table.label_codes, parameters
    )
    first = repeated.first_occurrences()
    rows = total.rows
    distinct = rows if first is None else int(first.sum())
    if parameters.duplicates != "distinct":
        first = None
    if first is not None:
        again = TableCells(parameters, path, violations).blocks()
        total = _tally_blocks(_choose_rows(again, first), parameters)
    schema, labels = spread_schema(parameters, names), tuple(table.label_codes)
    missing = dict(zip(schema.names, total.missing.tolist(), strict=True))
    _refuse_policy(parameters, missing, total)
    counts = {text: int(n) for text, n in zip(labels, total.codes, strict=False)}
    return TableSurvey(
        schema, rows, distinct, first, counts, missing, labels, total.spans
    )


def pieces(parameters: Parameters, path: Path) -> Iterator[Columns]:
    """Yield client_id, label, group (n,) and curve (n, p) of at most 65,536 clients."""
    counts = survey_table(parameters, path)
    place = np.array([counts.schema.classes.index(text) for text in counts.labels])
    begin = 0
    table = TableCells(parameters, path, Violations(path, parameters))
    for block in _choose_rows(table.blocks(), counts.first):
        for part in _split_block(block):
            absent = tabular.missing_mask(part.values, counts.schema)
            settled = tabular.fill_missing(
                part.values, absent, counts.schema, parameters.missing
            )
            selection = _keep_mask(absent, parameters)
            n = int(selection.sum())
            ids, labels = part.ids[selection], place[part.codes[selection]]
            groups = np.arange(begin, begin + n)
            yield frames.client_columns(settled[selection], labels, ids, groups)
            begin += n


def members(parameters: Parameters, path: Path) -> Iterator[Columns]:
    """Yield client_id and group of the clients of ``pieces``.

    Only the column of ids is read, unless other ones decide who is a client.
    """
    if parameters.duplicates == "distinct" or parameters.missing == "drop":
        for piece in pieces(parameters, path):
            yield {name: piece[name] for name in ("client_id", "group")}
        return
    violations, seen_ids, begin = Violations(path, parameters), _SeenIds(), 0
    table = TableCells(parameters, path, violations)
    for ids in table.ids():
        seen_ids.add(ids)
        yield {"client_id": ids, "group": np.arange(begin, begin + len(ids))}
        begin += len(ids)
    seen_ids.check(table)
    violations.check()


@dataclass
class _RowCounts:
    """Counts over rows: all, those that stay clients by label code, missing values."""

    rows: int
    codes: Integers
    missing: Integers
    empty: Integers
    spans: ColumnSpans


def _tally_blocks(blocks: Iterator[TableBlock], parameters: Parameters) -> _RowCounts:
    schema = spread_schema(parameters, ())
    p = len(schema.features)
    ends = ([getattr(f, end) for f in schema.features] for end in ("lower", "upper"))
    spans = ColumnSpans(*(np.array(end, dtype=np.float64) for end in ends))
    total = _RowCounts(0, np.zeros(1, int), np.zeros(p, int), np.zeros(p, int), spans)
    for block in blocks:
        absent = tabular.missing_mask(block.values, schema)
        codes = block.codes[_keep_mask(absent, parameters) & (block.codes >= 0)]
        size = max(len(total.codes), int(codes.max(initial=0)) + 1)
        counted = np.bincount(codes, minlength=size)
        counted[: len(total.codes)] += total.codes
        total.codes = counted
        total.rows += len(block.ids)
        total.missing += absent.sum(axis=0)
        spans.add(block.values, absent)
        total.empty += np.isnan(block.values).sum(axis=0)
    return total


def _refuse_policy(
    parameters: Parameters, missing: dict[str, int], total: _RowCounts
) -> None:
    """Refuse a policy that the missing values do not allow."""
    if parameters.missing == "keep":
        tabular.refuse_empty_cells(
            dict(zip(missing, total.empty.tolist(), strict=True))
        )
    if parameters.missing == "drop" and not total.codes.sum():
        raise tabular.no_rows_error()


def _keep_mask(absent: Bits, parameters: Parameters) -> Bits:
    if parameters.missing != "drop":
        return np.full(len(absent), True)
    return np.asarray(~absent.any(axis=1))


def _note_repeats(
    blocks: Iterator[TableBlock], repeated: RepeatedRows, ids: _SeenIds
) -> Iterator[TableBlock]:
    for block in blocks:
        repeated.add(np.column_stack([block.values, block.codes]))
        ids.add(block.ids)
        yield block


def _choose_rows(
    blocks: Iterator[TableBlock], first: Bits | None
) -> Iterator[TableBlock]:
    for block in blocks:
        end = block.begin + len(block.ids)
        yield block if first is None else block.select(first[block.begin : end])


def _split_block(block: TableBlock) -> Iterator[TableBlock]:
    for start in range(0, len(block.ids), CLIENTS):
        yield block.select(slice(start, start + CLIENTS))


class _SeenIds:
    """All ids so far."""

    def __init__(self) -> None:
        self._parts: list[Integers] = []

    def add(self, ids: Integers) -> None:
        self._parts.append(ids)

    def check(self, table: TableCells) -> None:
        """Count ids that repeat an earlier one; empty ones are counted elsewhere."""
        if table.parameters.id is None or not self._parts:
            return
        ranked = np.concatenate(self._parts)
        ranked.sort()
        if (ranked[1:] != ranked[:-1]).all():
            return
        every = np.concatenate(self._parts)
        nonempty = np.delete(np.arange(len(every)), np.concatenate(table.empty))
        again = np.ones(len(nonempty), dtype=bool)
        again[np.unique(every[nonempty], return_index=True)[1]] = False
        rows = nonempty[again]
        what = f"{table.parameters.id} repeats an earlier one{SPELT}"
        table.violations.add(what, len(rows), table.rows_with_ids(rows[:EXAMPLES]))
