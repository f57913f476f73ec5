"""Tables of a sender: records read and checked by the owner's form.

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
from curvote.client.words import format_names, printable_name
from curvote.identifier import normalise_id
from curvote.table_file import Problems, Table

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Bounded = Sequence[tuple[str, float, float]]


@dataclass(frozen=True, eq=False)
class TableRecords:
    """The records of a table: values (n, d), class codes (n,) and ids.

    A code is the label's place among the classes. ``ids`` (n,) name the records in the
    ledger. ``notes`` are what the holder should hear, a line each.
    """

    values: Array
    codes: Codes
    ids: list[str]
    notes: tuple[str, ...]


def read_records(
    path: Path, form: Form, features: Bounded, classes: Sequence[str]
) -> TableRecords:
    """Return the records that a task asks of the table at ``path``.

    ``features`` are (name, lower, upper) and ``classes`` those of the task; without an
    id a record is called by its row. UserError, every problem at once, with lines, and
    the same whatever a task asks for: a column of the form that is not there or stands
    twice, no row, a cell that is no finite number, a label that is no class of the
    form, an id that is empty or stands twice.
    """
    frame, problems = table_file.read_cells(path), Problems(path)
    if not len(frame):
        problems.add("it has no row")
    named_columns = [form.label, *([] if form.id is None else [form.id])]
    table_file.note_missing_columns(frame, [*form.columns, *named_columns], problems)
    present = [name for name in form.columns if _stands_once(frame, name)]
    numbers = table_file.read_numbers(frame, present, problems)
    codes = np.zeros(len(frame), dtype=np.int64)
    if _stands_once(frame, form.label):
        codes = read_class_codes(frame, form.label, form.classes, problems)
    ids = [f"row {row}" for row in range(1, len(frame) + 1)]
    if form.id is not None and _stands_once(frame, form.id):
        ids = read_ids(frame, form.id, problems)
    problems.check()
    values = numbers[:, [present.index(name) for name, _, _ in features]]
    codes = map_classes(form.classes, classes)[codes]
    notes = [*_clip_notes(values, features), *absent_class_notes(codes, classes)]
    return TableRecords(values, codes, ids, tuple(notes))


def _stands_once(frame: Table, name: str) -> bool:
    return list(frame.columns).count(name) == 1


def _clip_notes(values: Array, features: Bounded) -> Iterable[str]:
    """Yield a note for each column with values outside its bounds."""
    for column, (name, lower, upper) in zip(values.T, features, strict=True):
        out = int(((column < lower) | (column > upper)).sum())
        if out:
            words = f"{out} of {len(column)} values lie outside {lower:g} to {upper:g}"
            yield f"{printable_name(name)}: {words} and are clipped"


def map_classes(form_classes: Sequence[str], task_classes: Sequence[str]) -> Codes:
    """Return the index in the task's classes of each of the form's, (K,)."""
    indices = {normalise_id(name): place for place, name in enumerate(task_classes)}
    return np.array(
        [indices[normalise_id(name)] for name in form_classes], dtype=np.int64
    )


def read_class_codes(
    frame: Table, label: str, classes: Sequence[str], problems: Problems
) -> Codes:
    """Return the indices of the labels among the classes."""
    indices = {normalise_id(name): place for place, name in enumerate(classes)}
    indices |= {name: place for place, name in enumerate(classes)}
    texts = table_file.read_texts(frame, label, problems)
    matches = [indices.get(text, indices.get(normalise_id(text), -1)) for text in texts]
    codes = np.array(matches, dtype=np.int64)
    strange = {text for text, code in zip(texts, matches, strict=True) if code < 0}
    for text in sorted(strange - {""})[: table_file.MAX_LISTED]:
        rows = np.array([cell == text for cell in texts])
        words = f"{label}: {printable_name(text)} is none of {format_names(classes)},"
        problems.add_rows(frame, rows, words)
    return codes


def absent_class_notes(codes: Codes, classes: Sequence[str]) -> list[str]:
    """Return a note for each class without records."""
    present = set(codes.tolist())
    missing = [c for place, c in enumerate(classes) if place not in present]
    return [f"no record is {printable_name(name)}" for name in missing]


def read_ids(frame: Table, id_: str, problems: Problems) -> list[str]:
    """Return normalised ids; a repeated one is recorded as a problem."""
    ids = [normalise_id(text) for text in table_file.read_texts(frame, id_, problems)]
    previous: set[str] = {""}
    again = np.zeros(len(ids), dtype=bool)
    for row, text in enumerate(ids):
        again[row] = text in previous and text != ""
        previous.add(text)
    problems.add_rows(frame, again, f"{id_}: an id that stood there before")
    return ids
