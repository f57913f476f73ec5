"""A user's table in two passes, whatever its size: what it is, then its clients.

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
from curvote.datasets.own.repeated import Repeated
from curvote.datasets.own.spans import Spans
from curvote.datasets.own.table_parameters import Parameters
from curvote.datasets.own.table_rows import Block, Cells, spread
from curvote.datasets.tables import tabular
from curvote.datasets.tables.tabular import TableSchema

Bits = NDArray[np.bool_]
Columns = dict[str, NDArray[np.int64] | NDArray[np.float64]]
CLIENTS: Final = 65_536


@dataclass(frozen=True, eq=False)
class Survey:
    """What the whole file tells.

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
    spans: Spans

    def by_class(self, classes: Sequence[str]) -> list[int]:
        """Return how many clients each class has."""
        return [self.counts.get(name, 0) for name in classes]


def survey(parameters: Parameters, path: Path) -> Survey:
    """Return what the file at ``path`` tells; UserError: all that is wrong with it.

    A file that stays the same is read once.
    """
    found = path.stat()
    stamp = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return _survey(_Hashable(parameters), path, stamp)


class _Hashable:
    """Parameters by their text: their mappings have no hash."""

    def __init__(self, parameters: Parameters) -> None:
        self.given = parameters
        self._text = parameters.model_dump_json()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashable) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


@lru_cache(maxsize=1)
def _survey(wanted: _Hashable, path: Path, _stamp: tuple[int, ...]) -> Survey:
    given, violations = wanted.given, Violations(path, wanted.given)
    table, repeated, ids = Cells(given, path, violations), Repeated(), _Ids()
    total = _tallied(_noted(table.blocks(), repeated, ids), given)
    ids.check(table)
    names = labelled.named(violations, given.label, table.known, given)
    first = repeated.first()
    rows = total.rows
    distinct = rows if first is None else int(first.sum())
    if given.duplicates != "distinct":
        first = None
    if first is not None:
        again = Cells(given, path, violations).blocks()
        total = _tallied(_chosen(again, first), given)
    schema, labels = spread(given, names), tuple(table.known)
    missing = dict(zip(schema.names, total.missing.tolist(), strict=True))
    _refuse(given, missing, total)
    counts = {text: int(n) for text, n in zip(labels, total.codes, strict=False)}
    return Survey(schema, rows, distinct, first, counts, missing, labels, total.spans)


def pieces(parameters: Parameters, path: Path) -> Iterator[Columns]:
    """Yield client_id, label, group (n,) and curve (n, p) of at most 65,536 clients."""
    told = survey(parameters, path)
    place = np.array([told.schema.classes.index(text) for text in told.labels])
    begin = 0
    table = Cells(parameters, path, Violations(path, parameters))
    for block in _chosen(table.blocks(), told.first):
        for part in _parts(block):
            absent = tabular.absent(part.values, told.schema)
            settled = tabular.settled(
                part.values, absent, told.schema, parameters.missing
            )
            kept = _kept(absent, parameters)
            n = int(kept.sum())
            ids, labels = part.ids[kept], place[part.codes[kept]]
            groups = np.arange(begin, begin + n)
            yield frames.columns(settled[kept], labels, ids, groups)
            begin += n


def members(parameters: Parameters, path: Path) -> Iterator[Columns]:
    """Yield client_id and group of the same clients.

    Only the column of ids is read, unless other ones decide who is a client.
    """
    if parameters.duplicates == "distinct" or parameters.missing == "drop":
        for piece in pieces(parameters, path):
            yield {name: piece[name] for name in ("client_id", "group")}
        return
    violations, seen, begin = Violations(path, parameters), _Ids(), 0
    table = Cells(parameters, path, violations)
    for ids in table.ids():
        seen.add(ids)
        yield {"client_id": ids, "group": np.arange(begin, begin + len(ids))}
        begin += len(ids)
    seen.check(table)
    violations.check()


@dataclass
class _Total:
    """Counts over rows: all, those that stay clients by label code, missing values."""

    rows: int
    codes: Integers
    missing: Integers
    empty: Integers
    spans: Spans


def _tallied(blocks: Iterator[Block], given: Parameters) -> _Total:
    schema = spread(given, ())
    p = len(schema.features)
    ends = ([getattr(f, end) for f in schema.features] for end in ("lower", "upper"))
    spans = Spans(*(np.array(end, dtype=np.float64) for end in ends))
    total = _Total(0, np.zeros(1, int), np.zeros(p, int), np.zeros(p, int), spans)
    for block in blocks:
        absent = tabular.absent(block.values, schema)
        codes = block.codes[_kept(absent, given) & (block.codes >= 0)]
        size = max(len(total.codes), int(codes.max(initial=0)) + 1)
        counted = np.bincount(codes, minlength=size)
        counted[: len(total.codes)] += total.codes
        total.codes = counted
        total.rows += len(block.ids)
        total.missing += absent.sum(axis=0)
        spans.add(block.values, absent)
        total.empty += np.isnan(block.values).sum(axis=0)
    return total


def _refuse(given: Parameters, missing: dict[str, int], total: _Total) -> None:
    """Refuse a policy that the missing values do not allow."""
    if given.missing == "keep":
        tabular.refuse_empty(dict(zip(missing, total.empty.tolist(), strict=True)))
    if given.missing == "drop" and not total.codes.sum():
        raise tabular.no_row()


def _kept(absent: Bits, given: Parameters) -> Bits:
    if given.missing != "drop":
        return np.full(len(absent), True)
    return np.asarray(~absent.any(axis=1))


def _noted(blocks: Iterator[Block], repeated: Repeated, ids: _Ids) -> Iterator[Block]:
    for block in blocks:
        repeated.add(np.column_stack([block.values, block.codes]))
        ids.add(block.ids)
        yield block


def _chosen(blocks: Iterator[Block], first: Bits | None) -> Iterator[Block]:
    for block in blocks:
        end = block.begin + len(block.ids)
        yield block if first is None else block.part(first[block.begin : end])


def _parts(block: Block) -> Iterator[Block]:
    for start in range(0, len(block.ids), CLIENTS):
        yield block.part(slice(start, start + CLIENTS))


class _Ids:
    """All ids so far."""

    def __init__(self) -> None:
        self._parts: list[Integers] = []

    def add(self, ids: Integers) -> None:
        self._parts.append(ids)

    def check(self, table: Cells) -> None:
        """Count ids that repeat an earlier one; empty ones are counted elsewhere."""
        if table.given.id is None or not self._parts:
            return
        ranked = np.concatenate(self._parts)
        ranked.sort()
        if (ranked[1:] != ranked[:-1]).all():
            return
        every = np.concatenate(self._parts)
        stated = np.delete(np.arange(len(every)), np.concatenate(table.empty))
        again = np.ones(len(stated), dtype=bool)
        again[np.unique(every[stated], return_index=True)[1]] = False
        rows = stated[again]
        what = f"{table.given.id} repeats an earlier one{SPELT}"
        table.violations.add(what, len(rows), table.shown(rows[:EXAMPLES]))
