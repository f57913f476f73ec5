"""Messages of MRMA about several classes: one class against the rest.

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

from curvote.base.entropy import Entropy, stream
from curvote.chain.stage import Columns
from curvote.chain.system import MessageDescription
from curvote.mechanisms.exact import uniform_below
from curvote.messages.message import ClientData
from curvote.systems.common.questions import (
    answer_questions,
    complete_labels,
    one_against_rest_code,
)
from curvote.systems.mrma import messages
from curvote.wire.task import Task

Array = NDArray[np.float64]


class ReportPayload(messages.ReportPayload):
    """A report as JSON: a class's place, d noised numbers and a noised answer."""

    question: Annotated[int, Field(ge=0)]


class ClassReport(messages.Report):
    """Report of a training client: a class, noised z, noised answer."""

    table, binary = "class_reports", False
    payload = ReportPayload

    def describe(
        self, config: Mapping[str, Any], d: int
    ) -> Sequence[MessageDescription]:
        """Return the description of a report and how its budget is shared."""
        (report,) = super().describe(config, d)
        what = f'one report: {d} noised numbers, and one noised answer to "is it k?"'
        detail = f"{report.detail}; class k is drawn without the record, and not hidden"
        return [replace(report, what=what, detail=detail)]

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return question (n,), drawn without the data; z (n, d) and label (n,)."""
        n = complete_labels(data, len(task.classes)).size  # before anything is drawn
        questions = uniform_below(_question_count(task), n, stream(entropy, "question"))
        noised = super().draw(task, _answer_data(task, data, questions), entropy)
        return {"question": questions, **noised}

    def possible_mask(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Return for each report whether a client can have sent it."""
        is_question = messages["question"] < _question_count(task)
        return np.asarray(is_question & super().possible_mask(task, messages))

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return the privacy loss of z and label; the question is the client's coin."""
        questions = messages["question"]
        pair = (
            _answer_data(task, first, questions),
            _answer_data(task, second, questions),
        )
        return super().log_ratio(task, *pair, messages)

    def collect(self, task: Task, messages: Columns) -> Columns:
        """Return the table ``class_reports``, numbers that are too rare cut off."""
        return super().collect(task, messages) | {"question": messages["question"]}


class ClassVote(messages.Vote):
    """An evaluation client's noised bit: is it right for me about its class?"""

    binary = False
    what = 'one noised bit: "the classifier was right for me about its class"'
    detail = "each judges one classifier of one class, once, with the whole budget"


def _question_count(task: Task) -> int:
    """Return how many questions there are."""
    return len(one_against_rest_code(len(task.classes)))


def _answer_data(
    task: Task, data: ClientData, questions: NDArray[np.int64]
) -> ClientData:
    """Return the clients' data with answers as labels, 1 for yes."""
    replies = answer_questions(
        one_against_rest_code(len(task.classes)), questions, data.labels
    )
    return replace(data, labels=(replies > 0).astype(np.int64))


MESSAGES = {"report": ClassReport(), "vote": ClassVote()}
