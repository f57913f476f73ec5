"""The messages of MRMA about several classes: each is about one class against the rest.

The class is public and no data decides it. Who trains draws it by a coin that no record
touches and sends it in the clear beside the noised z and the noised answer to "is it
this class?", on which the whole budget is spent. A voter's follows from its candidate:
candidate b is about class b mod K.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from curvote.chain.sent import Sent
from curvote.chain.stage import Columns
from curvote.entropy import Entropy, stream
from curvote.mechanisms.exact import below
from curvote.protocols.message import Known
from curvote.protocols.mrma import messages
from curvote.protocols.questions import answers, one_against_rest, whole
from curvote.task import Task

Array = NDArray[np.float64]


class ReportPayload(messages.ReportPayload):
    """A report as JSON: a class's place, d noised numbers and a noised answer."""

    question: Annotated[int, Field(ge=0)]


class Report(messages.Report):
    """A training client's class, noised z, and noised "is it this class?"."""

    table, binary = "class_reports", False
    payload = ReportPayload

    def words(self, config: Mapping[str, Any], d: int) -> Sequence[Sent]:
        """Return a report in words: how its budget is shared out."""
        (report,) = super().words(config, d)
        what = f'one report: {d} noised numbers, and one noised answer to "is it k?"'
        detail = f"{report.detail}; class k is drawn without the record, and not hidden"
        return [replace(report, what=what, detail=detail)]

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return question (n,), drawn without the data; z (n, d) and label (n,)."""
        n = whole(known, len(task.classes)).size  # before anything is drawn
        asked = below(_asked(task), n, stream(entropy, "question"))
        sent = super().draw(task, _answering(task, known, asked), entropy)
        return {"question": asked, **sent}

    def possible(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each report whether it is about a class and its numbers are drawn."""
        asked = messages["question"] < _asked(task)
        return np.asarray(asked & super().possible(task, messages))

    def log_ratio(
        self, task: Task, one: Known, other: Known, messages: Columns
    ) -> Array:
        """Return the privacy loss of z and label; the question is the client's coin."""
        asked = messages["question"]
        pair = _answering(task, one, asked), _answering(task, other, asked)
        return super().log_ratio(task, *pair, messages)

    def gather(self, task: Task, messages: Columns) -> Columns:
        """Return the table ``class_reports``, numbers that are too rare cut off."""
        return super().gather(task, messages) | {"question": messages["question"]}


class Vote(messages.Vote):
    """An evaluation client's noised bit: is it right for me about its class?"""

    binary = False
    what = 'one noised bit: "the classifier was right for me about its class"'
    detail = "each judges one classifier of one class, once, with the whole budget"


def _asked(task: Task) -> int:
    """Return how many questions there are."""
    return len(one_against_rest(len(task.classes)))


def _answering(task: Task, known: Known, asked: NDArray[np.int64]) -> Known:
    """Return what clients know whose label is the answer, 1 for yes."""
    told = answers(one_against_rest(len(task.classes)), asked, known.labels)
    return replace(known, labels=(told > 0).astype(np.int64))


MESSAGES = {"report": Report(), "vote": Vote()}
