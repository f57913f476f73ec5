"""The message of `majority`: one noised label."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.chain.stage import Columns
from curvote.entropy import Entropy, stream
from curvote.errors import UserError
from curvote.mechanisms.binary_rr import BinaryRR, signs
from curvote.protocols.message import Known, Message, Setting, check_fields
from curvote.protocols.payloads import Payload
from curvote.protocols.roles import EVERYBODY
from curvote.representation.encoding import Encoding
from curvote.task import Task

Array = NDArray[np.float64]


class LabelPayload(Payload):
    """A noised label as JSON."""

    label: Literal[-1, 1]


class Label(Message):
    """A client's label by randomized response with the whole budget."""

    name, stage, table = "report", "privatize", "labels"
    senders, payload = EVERYBODY, LabelPayload
    what, mechanism = "one noised label", BinaryRR.name
    detail = "the whole of it; none of the numbers is sent"

    def terms(self, setting: Setting, encoding: Encoding) -> dict[str, Any]:
        """Return the mechanism: nothing is left to the configuration."""
        return {"mechanism": BinaryRR.name}

    def rehearsal(self, stated: Task) -> Task:
        """Return the stated task with the one mechanism that it may name."""
        return replace(stated, mechanism=BinaryRR.name, params={})

    def admit(self, task: Task) -> None:
        """Refuse another mechanism, parameters and candidates."""
        check_fields(task)
        validate.one_of((BinaryRR.name,), mechanism=task.mechanism)

    def worst_loss(self, task: Task) -> float:
        """Return the loss of the one label."""
        return BinaryRR(epsilon=task.epsilon).worst_log_ratio()

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return the noised labels (n,)."""
        noise = stream(entropy, "majority")
        noised = BinaryRR(epsilon=task.epsilon).randomize(_labels(known), noise)
        return {"label": noised.astype(np.int8)}

    def possible(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each message whether it is a label."""
        return np.isin(messages["label"], (-1, 1))

    def log_ratio(
        self, task: Task, one: Known, other: Known, messages: Columns
    ) -> Array:
        """Return the privacy loss of the label; z has no part in the message."""
        pair = _labels(one), _labels(other)
        return BinaryRR(epsilon=task.epsilon).log_ratio(*pair, messages["label"])

    def gather(self, task: Task, messages: Columns) -> Columns:
        """Return the table ``labels``."""
        return {"label": messages["label"].astype(np.int8)}


class Compared(Label):
    """The same, drawn in a study beside another system's messages."""

    detail = "for majority, the constant classifier that a method must beat"


def _labels(known: Known) -> Array:
    """Return the labels (n,) of whole records; UserError where one is broken.

    Else whether a client answers at all could say that its other numbers are damaged.
    """
    labels, records = signs(known.labels), validate.finite(z=known.z)
    if labels.shape != (len(records),):
        raise UserError(f"{labels.size} labels for {len(records)} records.")
    return labels


MESSAGES = {"report": Label()}
