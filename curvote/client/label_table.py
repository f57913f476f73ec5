"""A registry's table of labels: by the public names of records, and nothing else."""

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
RECORD: Final = "record"
LABEL: Final = "label"


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of ``records`` (n,): ``places`` (n,) among the classes.

    Records are called as `curvote.identifier.normal` spells their names. ``notes`` are
    what the holder should hear, a line each.
    """

    records: list[str]
    places: NDArray[np.int64]
    notes: tuple[str, ...]


def read_labels(path: Path, form: Form, classes: Sequence[str]) -> Labels:
    """Return the labels of the table at ``path`` as places among a task's classes.

    UserError, every problem at once, with lines, and the same whatever a task asks
    for: a column of the form that is not there or stands twice, no row, a record that
    is empty or stands twice, a label that is no class of the form.
    """
    record = RECORD if form.id is None else form.id
    frame, problems = table_file.given(path), Problems(path)
    if not len(frame):
        problems.add("it has no row")
    if table_file.missing(frame, [record, form.label], problems):
        problems.check()
    names = table.names(frame, record, problems)
    own = table.places(frame, form.label, form.classes, problems)
    problems.check()
    places = table.renamed(form.classes, classes)[own]
    return Labels(names, places, tuple(table.absent(places, classes)))
