"""Answers of a client to tasks: validation first, then noise, never refusal.

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
from curvote.client.record import OwnerRecord
from curvote.entropy import Entropy
from curvote.protocols.message import ClientData, message_of, payload_at
from curvote.representation.encoding import Encoding
from curvote.task import AnyTask, Task
from curvote.task_form import LARGEST_CURVE_VALUE

Array = NDArray[np.float64]


def answer_task(
    task: Task, record: OwnerRecord, about: int | None, entropy: Entropy
) -> dict[str, Any]:
    """Return the noised payload of one client for a validated task.

    ``about`` is the candidate that the invitation names. Never fails because of what
    ``record`` holds.
    """
    with np.errstate(all="ignore"):
        columns = _try_draw(task, record, about, entropy)
        if columns is None:
            columns = message_of(task).draw(task, stand_in_inputs(task, about), entropy)
    return payload_at(columns, 0)


def answer_about_record(
    task: AnyTask, record: str, place: int, entropy: Entropy
) -> dict[str, Any]:
    """Return the noised payload about a public record's label."""
    no_numbers = np.empty((1, 0))
    data = ClientData(no_numbers, no_numbers, np.array([place]))
    return {"record": record} | payload_at(
        message_of(task).draw(task, data, entropy), 0
    )


def _try_draw(
    task: Task, record: OwnerRecord, about: int | None, entropy: Entropy
) -> Columns | None:
    try:
        return message_of(task).draw(task, client_inputs(task, record, about), entropy)
    except Exception:  # noqa: BLE001 - a failure that shows would tell of the record
        return None


def client_inputs(task: Task, record: OwnerRecord, about: int | None) -> ClientData:
    """Return a client's record as inputs within the range of a task."""
    encoding = task.encoding
    finite_values = np.nan_to_num(record.values, nan=0.0, posinf=np.inf, neginf=-np.inf)
    curve = np.clip(finite_values, -LARGEST_CURVE_VALUE, LARGEST_CURVE_VALUE)[None]
    missing = np.isnan(record.values).any()
    coefficients = np.where(
        missing, public_centre(encoding), encoding.projection.apply(curve)
    )
    return _client_data(encoding, coefficients, record.label, about)


def stand_in_inputs(task: Task, about: int | None) -> ClientData:
    """Return the inputs that stand for a broken record: centre, class 0."""
    return _client_data(task.encoding, public_centre(task.encoding), 0, about)


def public_centre(encoding: Encoding) -> Array:
    """Return the coefficients (1, d) in the middle of the public constants."""
    public = encoding.constants
    middle = public.get("centre", 0.0)
    if "lower" in public:
        middle = (public["lower"] + public["upper"]) / 2
    return np.broadcast_to(middle, (1, encoding.d))


def _client_data(
    encoding: Encoding, coefficients: Array, label: int, about: int | None
) -> ClientData:
    z, _ = encoding.rescaled(coefficients)
    candidate = None if about is None else np.array([about])
    return ClientData(coefficients, z, np.array([label]), candidate)
