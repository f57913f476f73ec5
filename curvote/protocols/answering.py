"""A client's answer to a task it accepted: noised, and never a refusal.

Whether a client answers, and in which words, must not depend on its record. So whatever
a record holds becomes an input, by rules that everybody knows:

- a value beyond 1e12 in size, infinite ones included, stands for that bound;
- a record with a missing value (NaN) stands for the public centre of its rescaling;
- a record on which anything fails, for whatever reason, stands for that centre and the
  first class.

The label is the owner's word, one of those that the task names.

Of a message that belongs to a public record nothing but the label is secret, and
nothing about a label can fail.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns
from curvote.client.record import Given
from curvote.entropy import Entropy
from curvote.protocols.message import Known, message_of, row
from curvote.representation.encoding import Encoding
from curvote.task import Asked, Task
from curvote.task_form import LARGEST_VALUE

Array = NDArray[np.float64]


def answer(
    task: Task, given: Given, about: int | None, entropy: Entropy
) -> dict[str, Any]:
    """Return the noised payload of one client, for a task that was judged.

    ``about`` is the candidate that the invitation names. Never fails because of what
    ``given`` holds.
    """
    with np.errstate(all="ignore"):
        columns = _drawn(task, given, about, entropy)
        if columns is None:
            columns = message_of(task).draw(task, fixed(task, about), entropy)
    return row(columns, 0)


def of_record(task: Asked, record: str, place: int, entropy: Entropy) -> dict[str, Any]:
    """Return the noised payload about a public record whose label has this place."""
    nothing = np.empty((1, 0))
    known = Known(nothing, nothing, np.array([place]))
    return {"record": record} | row(message_of(task).draw(task, known, entropy), 0)


def _drawn(
    task: Task, given: Given, about: int | None, entropy: Entropy
) -> Columns | None:
    try:
        return message_of(task).draw(task, known(task, given, about), entropy)
    except Exception:  # noqa: BLE001 - a failure that shows would tell of the record
        return None


def known(task: Task, given: Given, about: int | None) -> Known:
    """Return what the client can tell, as inputs in the range that a task allows."""
    encoding = task.encoding
    held = np.nan_to_num(given.values, nan=0.0, posinf=np.inf, neginf=-np.inf)
    curve = np.clip(held, -LARGEST_VALUE, LARGEST_VALUE)[None]
    missing = np.isnan(given.values).any()
    coefficients = np.where(missing, centre(encoding), encoding.projection.apply(curve))
    return _known(encoding, coefficients, given.label, about)


def fixed(task: Task, about: int | None) -> Known:
    """Return the record that stands for whatever cannot be told: centre, class 0."""
    return _known(task.encoding, centre(task.encoding), 0, about)


def centre(encoding: Encoding) -> Array:
    """Return the coefficients (1, d) in the middle of the public constants."""
    public = encoding.constants
    middle = public.get("centre", 0.0)
    if "lower" in public:
        middle = (public["lower"] + public["upper"]) / 2
    return np.broadcast_to(middle, (1, encoding.d))


def _known(
    encoding: Encoding, coefficients: Array, label: int, about: int | None
) -> Known:
    z, _ = encoding.rescaled(coefficients)
    judge = None if about is None else np.array([about])
    return Known(coefficients, z, np.array([label]), judge)
