"""Checks of the fields of a task that messages about one record share."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from curvote.errors import UserError
from curvote.task import Task
from curvote.validate import format_value

# A label is one byte, in tables and wherever they are read.
MAX_CLASSES: Final = 1 << 7


def check_fields(
    task: Task,
    *,
    params: Collection[str] | None = (),
    candidates: bool = False,
    binary: bool = True,
) -> None:
    """Refuse a task with other parameters than ``params``, or candidates.

    With None the parameters are the mechanism's own, which checks them. A ``binary``
    message tells two classes apart, so it is about no more.
    """
    if binary and len(task.classes) > 2:
        raise UserError(f"a {task.asks} of {task.protocol} is about two classes.")
    if params is not None and set(task.params) != set(params):
        raise UserError(
            f"params holds {format_value(sorted(task.params))}; a {task.asks} of"
            f" {task.protocol} takes {', '.join(sorted(params)) or 'none'}."
        )
    if (task.candidates is not None) != candidates:
        wanted = "no candidates" if candidates else "candidates"
        raise UserError(f"a {task.asks} of {task.protocol} with {wanted}.")


def check_class_count(n_classes: int) -> None:
    """Refuse more classes than a label can tell apart."""
    if n_classes > MAX_CLASSES:
        raise UserError(
            f"there are {n_classes} classes; a noised message tells at most"
            f" {MAX_CLASSES}."
        )
