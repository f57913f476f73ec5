"""Label tables of a registry: labels by the public names of records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from curvote import table_file
from curvote.client import table
from curvote.client.form import Form
from curvote.table_file import Problems

# What a registry's columns are called unless its form says otherwise.
RECORD_COLUMN: Final = "record"
LABEL_COLUMN: Final = "label"


@dataclass(frozen=True, eq=False)
class TableLabels:
    """The labels of ``records`` (n,) as indices of classes (n,).

    Records are called as `curvote.identifier.normalise_id` spells their names.
    ``notes`` are what the holder should hear, a line each.
    """

    records: list[str]
    places: NDArray[np.int64]
    notes: tuple[str, ...]


def read_labels(path: Path, form: Form, classes: Sequence[str]) -> TableLabels:
    """Return the labels of a table as indices of the task's classes.

    UserError, every problem at once, with lines, and the same whatever a task asks
    for: a column of the form that is not there or stands twice, no row, a record that
    is empty or stands twice, a label that is no class of the form.
    """
    record = RECORD_COLUMN if form.id is None else form.id
    frame, problems = table_file.read_cells(path), Problems(path)
    if not len(frame):
        problems.add("it has no row")
    if table_file.note_missing_columns(frame, [record, form.label], problems):
        problems.check()
    names = table.read_ids(frame, record, problems)
    form_codes = table.read_class_codes(frame, form.label, form.classes, problems)
    problems.check()
    places = table.map_classes(form.classes, classes)[form_codes]
    return TableLabels(names, places, tuple(table.absent_class_notes(places, classes)))
