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
from curvote.table_file import Problems

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


def read_labels(path: Path, classes: Sequence[str]) -> Labels:
    """Return the labels in the columns record and label of the table at ``path``.

    UserError, every problem at once, with lines: a column that is not there or stands
    twice, no row, a record that is empty or stands twice, a label that is no class.
    """
    frame, problems = table_file.given(path), Problems(path)
    if not len(frame):
        problems.add("it has no row")
    if table_file.missing(frame, [RECORD, LABEL], problems):
        problems.check()
    names = table.names(frame, RECORD, problems)
    places = table.places(frame, LABEL, classes, problems)
    problems.check()
    return Labels(names, places, tuple(table.absent(places, classes)))
