"""An owner's record as it was given: in the task's form, whatever its values are.

Form is what the owner can mend without telling anybody: a file that can be read, one
number (or an empty place, NaN, or infinity) for each grid point, and a label that is
one of the task's two words. It is checked before anything is reserved, and a complaint
goes to the owner alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.client.curve_file import read_values
from curvote.task import Task


@dataclass(frozen=True, eq=False)
class Given:
    """What the owner gave: ``values`` (T,), NaN where missing, and label -1 or +1."""

    values: NDArray[np.float64]
    label: float


def read_form(path: Path, label: str, task: Task) -> Given:
    """Return the owner's record for ``task``; UserError: it is not in its form."""
    validate.one_of(task.classes, label=label)
    points = task.encoding.projection.matrix.shape[1]
    _, positive = task.classes.two
    return Given(read_values(path, points), 1.0 if label == positive else -1.0)
