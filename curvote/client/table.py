"""A sender's table as it was given, checked against the form that its owner stated.

What a task asks for has no say in what is complained of, so that a complaint, which
goes to the owner alone, tells a server nothing even where its absence is seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from curvote import table_file
from curvote.client.form import Form
from curvote.client.words import listed, printable
from curvote.identifier import normal
from curvote.table_file import Problems, Table

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Bounded = Sequence[tuple[str, float, float]]


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
    path: Path, form: Form, features: Bounded, classes: Sequence[str]
) -> Records:
    """Return what a task asks of the table at ``path``, whose ``form`` it fits.

    ``features`` are (name, lower, upper) and ``classes`` those of the task; without an
    id a record is called by its row. UserError, every problem at once, with lines, and
    the same whatever a task asks for: a column of the form that is not there or stands
    twice, no row, a cell that is no finite number, a label that is no class of the
    form, an id that is empty or stands twice.
    """
    frame, problems = table_file.given(path), Problems(path)
    if not len(frame):
        problems.add("it has no row")
    own = [form.label, *([] if form.id is None else [form.id])]
    table_file.missing(frame, [*form.columns, *own], problems)
    there = [name for name in form.columns if _once(frame, name)]
    every = table_file.numbers(frame, there, problems)
    codes = np.zeros(len(frame), dtype=np.int64)
    if _once(frame, form.label):
        codes = places(frame, form.label, form.classes, problems)
    ids = [f"row {row}" for row in range(1, len(frame) + 1)]
    if form.id is not None and _once(frame, form.id):
        ids = names(frame, form.id, problems)
    problems.check()
    values = every[:, [there.index(name) for name, _, _ in features]]
    codes = renamed(form.classes, classes)[codes]
    notes = [*_clipped(values, features), *absent(codes, classes)]
    return Records(values, codes, ids, tuple(notes))


def _once(frame: Table, name: str) -> bool:
    return list(frame.columns).count(name) == 1


def _clipped(values: Array, features: Bounded) -> Iterable[str]:
    """Yield what is clipped of each column, for the owner's eyes."""
    for column, (name, lower, upper) in zip(values.T, features, strict=True):
        out = int(((column < lower) | (column > upper)).sum())
        if out:
            words = f"{out} of {len(column)} values lie outside {lower:g} to {upper:g}"
            yield f"{printable(name)}: {words} and are clipped"


def renamed(own: Sequence[str], asked: Sequence[str]) -> Codes:
    """Return the place among the task's classes of each of the form's, (K,)."""
    known = {normal(name): place for place, name in enumerate(asked)}
    return np.array([known[normal(name)] for name in own], dtype=np.int64)


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
