"""The message of `majority`: one noised label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from curvote import validate
from curvote.chain.sent import Sent
from curvote.chain.stage import Columns
from curvote.entropy import Entropy, stream
from curvote.errors import UserError
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.mechanisms.k_rr import KRR
from curvote.protocols.fields import MOST_CLASSES, check_fields, check_number
from curvote.protocols.majority.response import Response, response
from curvote.protocols.message import Known, Message, Read, Setting
from curvote.protocols.payloads import Payload
from curvote.protocols.roles import EVERYBODY
from curvote.representation.encoding import Encoding
from curvote.task import Task

Array = NDArray[np.float64]


class LabelPayload(Payload):
    """A noised label as JSON; which of them there are, the task's classes say."""

    label: Annotated[int, Field(ge=-1, lt=MOST_CLASSES)]


class Label(Message):
    """A client's label by randomized response with the whole budget."""

    name, stage, table = "report", "privatize", "labels"
    senders, payload = EVERYBODY, LabelPayload
    what = "one noised label"
    detail = "the whole of it; none of the numbers is sent"

    def words(self, config: Mapping[str, Any], d: int) -> Sequence[Sent]:
        """Return a label in words; how it is noised, the source's classes say."""
        from curvote.datasets import lookup  # no client needs the sources

        classes = lookup.classes(config["source"])
        name = response(len(classes) if classes else 2).name
        return [Sent(self.who, self.what, name, self.detail)]

    def terms(self, setting: Setting, encoding: Encoding) -> dict[str, Any]:
        """Return nothing: the mechanism is left to the classes."""
        return {}

    def task(self, stated: Task, read: Read) -> Task:
        """Return the stated task with the mechanism of its classes."""
        return replace(stated, mechanism=_response(stated).name)

    def rehearsal(self, stated: Task) -> Task:
        """Return the stated task with the one mechanism that it may name."""
        return replace(stated, mechanism=_response(stated).name, params={})

    def admit(self, task: Task) -> None:
        """Refuse another mechanism, parameters, candidates and too many classes."""
        check_fields(task, binary=False)
        check_number(len(task.classes))
        validate.one_of((_response(task).name,), mechanism=task.mechanism)

    def worst_loss(self, task: Task) -> float:
        """Return the loss of the one label."""
        return _mechanism(task).worst_log_ratio()

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return the noised labels (n,)."""
        noise, given = stream(entropy, "majority"), _said(task, known)
        noised = _mechanism(task).randomize(given, noise)
        return {"label": noised.astype(np.int8)}

    def possible(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each message whether it is a label."""
        return np.isin(messages["label"], _response(task).words)

    def log_ratio(
        self, task: Task, one: Known, other: Known, messages: Columns
    ) -> Array:
        """Return the privacy loss of the label; z has no part in the message."""
        pair = _said(task, one), _said(task, other)
        return _mechanism(task).log_ratio(*pair, messages["label"])

    def gather(self, task: Task, messages: Columns) -> Columns:
        """Return the table ``labels``."""
        return {"label": messages["label"].astype(np.int8)}


class Compared(Label):
    """The same, drawn in a study beside another system's messages."""

    detail = "for majority, the constant classifier that a method must beat"


def _response(task: Task) -> Response:
    return response(len(task.classes))


def _mechanism(task: Task) -> BinaryRR | KRR:
    return _response(task).made(epsilon=task.epsilon)


def _said(task: Task, known: Known) -> NDArray[np.int64]:
    """Return what the labels (n,) of whole records say; UserError: one is broken.

    Else whether a client answers at all could say that its other numbers are damaged.
    """
    said, records = _response(task).said(known.labels), validate.finite(z=known.z)
    if said.shape != (len(records),):
        raise UserError(f"{said.size} labels for {len(records)} records.")
    return said


MESSAGES = {"report": Label()}
