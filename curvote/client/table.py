"""A sender's table as it was given, checked against the public form of its records.

A complaint goes to whoever holds the table, and to nobody else: the server learns
nothing from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from curvote import table_file
from curvote.client.words import listed, printable
from curvote.identifier import normal
from curvote.table_file import Problems, Table

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Bounded = Sequence[tuple[str, float, float]]
# More of a column outside its bounds than that: it is of another unit.
MOST_OUTSIDE = 0.5


@dataclass(frozen=True, eq=False)
class Records:
    """The records of a table: ``values`` (n, d) in the task's order, ``codes`` (n,).

    A code is the label's place among the classes. ``ids`` (n,) name the records in the
    ledger. ``notes`` are what the holder should hear, a line each.
    """

    values: Array
    codes: Codes
    ids: list[str]
    notes: tuple[str, ...]


def read_records(
    path: Path, features: Bounded, classes: Sequence[str], label: str, id_: str | None
) -> Records:
    """Return the records of the table at ``path``, its columns matched by name.

    ``features`` are (name, lower, upper), ``label`` and ``id_`` name columns; without
    an id a record is called by its row. UserError, every problem at once, with lines: a
    column that is not there or stands twice, no row, a cell that is no finite number, a
    column of which most lies outside its bounds, a label that is no class, an id that
    is empty or stands twice.
    """
    frame, problems = table_file.given(path), Problems(path)
    wanted = [name for name, _, _ in features]
    own = [label, *([] if id_ is None else [id_])]
    if not len(frame):
        problems.add("it has no row")
    table_file.missing(frame, [*wanted, *own], problems)
    there = [each for each in features if _once(frame, each[0])]
    values = table_file.numbers(frame, [name for name, _, _ in there], problems)
    notes = [*_bounded(values, there, problems)]
    codes = np.zeros(len(frame), dtype=np.int64)
    if _once(frame, label):
        codes = places(frame, label, classes, problems)
        notes += absent(codes, classes)
    ids = [f"row {row}" for row in range(1, len(frame) + 1)]
    if id_ is not None and _once(frame, id_):
        ids = names(frame, id_, problems)
    problems.check()
    return Records(values, codes, ids, tuple(notes))


def _once(frame: Table, name: str) -> bool:
    return list(frame.columns).count(name) == 1


def _bounded(values: Array, features: Bounded, problems: Problems) -> Iterable[str]:
    """Note columns that are of another unit; yield what is clipped of the others."""
    for column, (name, lower, upper) in zip(values.T, features, strict=True):
        out = int(((column < lower) | (column > upper)).sum())
        words = f"{out} of {len(column)} values lie outside {lower:g} to {upper:g}"
        if out > MOST_OUTSIDE * len(column):
            problems.add(f"{name}: {words}; is it in another unit?")
        elif out:
            yield f"{printable(name)}: {words} and are clipped"


def places(
    frame: Table, label: str, classes: Sequence[str], problems: Problems
) -> Codes:
    """Return places among the classes, by the label's text: 1.0 may be called 1."""
    known = {normal(name): place for place, name in enumerate(classes)}
    known |= {name: place for place, name in enumerate(classes)}
    given = table_file.texts(frame, label, problems)
    found = [known.get(text, known.get(normal(text), -1)) for text in given]
    codes = np.array(found, dtype=np.int64)
    strange = {text for text, code in zip(given, found, strict=True) if code < 0}
    for text in sorted(strange - {""})[: table_file.SHOWN]:
        rows = np.array([each == text for each in given])
        words = f"{label}: {printable(text)} is none of {listed(classes)},"
        problems.at(frame, rows, words)
    return codes


def absent(codes: Codes, classes: Sequence[str]) -> list[str]:
    """Return a note for each class that no record has."""
    there = set(codes.tolist())
    missing = [c for place, c in enumerate(classes) if place not in there]
    return [f"no record is {printable(name)}" for name in missing]


def names(frame: Table, id_: str, problems: Problems) -> list[str]:
    """Return ids as they are compared; one that stands twice is noted."""
    given = [normal(text) for text in table_file.texts(frame, id_, problems)]
    seen: set[str] = {""}
    again = np.zeros(len(given), dtype=bool)
    for row, text in enumerate(given):
        again[row] = text in seen and text != ""
        seen.add(text)
    problems.at(frame, again, f"{id_}: an id that stood there before")
    return given
