"""Broken twins of messages: each part is within the budget, not the message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.audit.message_subject import MessageSubject, record_subject_of
from curvote.base.entropy import Entropy
from curvote.chain.stage import Columns
from curvote.checks.examples import example_task as example
from curvote.curves.direction import class_codes
from curvote.mechanisms.randomized_response import KRR, BinaryRR
from curvote.messages.message import ClientData
from curvote.systems.cells.messages import (
    COUNTS_ANSWER,
    Answer,
    answer_mechanism,
    true_answers,
)
from curvote.systems.direct.messages import Direction, Gradient, task_gradients
from curvote.systems.mrma.messages import Report, Vote
from curvote.wire.task import Task

Array = NDArray[np.float64]


def _double_budget_task(task: Task) -> Task:
    """Return the task at which label and features get all of epsilon each."""
    return replace(task, epsilon=2 * task.epsilon, label_share=0.5)


class ReportNotSplit(Report):
    """Spends the full epsilon on the label and again on the features."""

    def max_privacy_loss(self, task: Task) -> float:
        """Return the loss that is really spent."""
        return super().max_privacy_loss(_double_budget_task(task))

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return z (n, d) and label (n,), both noised."""
        return super().draw(_double_budget_task(task), data, entropy)

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return the loss that is really spent."""
        return super().log_ratio(_double_budget_task(task), first, second, messages)


class NakedLabel(Report):
    """Noises the features, and forgets the label."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return noised z (n, d) and the true label (n,)."""
        columns = super().draw(task, data, entropy)
        return {**columns, "label": data.signs.astype(np.int8)}


class QuietLabelBin(Report):
    """Forgets the label's noise where the first number lies in a bin of width .01."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return noised z (n, d) and a label (n,) that is the true one in the bin."""
        columns = super().draw(task, data, entropy)
        quiet = np.abs(data.z[:, 0] - 0.305) < 0.005
        truth = data.signs.astype(np.int8)
        return {**columns, "label": np.where(quiet, truth, columns["label"])}


class DirectionTwice(Direction):
    """Spends the full epsilon on the label moment and again on the second moment."""

    def max_privacy_loss(self, task: Task) -> float:
        """Return the loss of both vectors together."""
        return 2 * super().max_privacy_loss(task)

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return two noised vectors of one record."""
        directions = [
            super(DirectionTwice, self).draw(task, data, entropy) for _ in "ab"
        ]
        return {**directions[0], "second": directions[1]["direction"]}

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return the loss of both vectors together."""
        second_message: dict[str, Any] = {"direction": messages["second"]}
        loss = super().log_ratio(task, first, second, messages)
        return loss + super().log_ratio(task, first, second, second_message)


class LabelBeside(Direction):
    """Noises which way a record lies, and sends the label beside it."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return the noised vectors of records without labels, and the labels."""
        bare = replace(data, labels=np.ones(len(data.labels)))
        columns = super().draw(task, bare, entropy)
        return {**columns, "label": data.labels}


class LabelBesideCode(Direction):
    """Hides the code of one of several classes, and names the class beside it.

    By k-RR, with the epsilon that the direction has spent.
    """

    def max_privacy_loss(self, task: Task) -> float:
        """Return the loss of both parts together."""
        return super().max_privacy_loss(task) + _label_mechanism(task).worst_log_ratio()

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return the noised vectors, and noised labels of the same records."""
        columns = super().draw(task, data, entropy)
        return {
            **columns,
            "label": _label_mechanism(task).randomize(data.labels, entropy),
        }

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return the loss of both parts together."""
        pair = first.labels.astype(np.int64), second.labels.astype(np.int64)
        label = _label_mechanism(task).log_ratio(*pair, messages["label"])
        return super().log_ratio(task, first, second, messages) + label


def _label_mechanism(task: Task) -> KRR:
    return KRR(epsilon=task.epsilon, n_classes=len(task.classes))


class CornerOfWrongLength(Direction):
    """Gives classes codes of several lengths, to which it stretches the answer.

    So its mean is right, and its length is the class.
    """

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return the noised vectors, as long as the codes of their classes."""
        directions = super().draw(task, data, entropy)["direction"]
        lengths = np.linspace(1, 2, len(task.classes))[data.labels.astype(np.int64)]
        return {"direction": directions * lengths[:, None]}


class VoteTwice(Vote):
    """Answers twice about its candidate, with epsilon each time."""

    def max_privacy_loss(self, task: Task) -> float:
        """Return the loss of both bits together."""
        return 2 * super().max_privacy_loss(task)

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return two noised bits about the candidate."""
        bits = [super(VoteTwice, self).draw(task, data, entropy) for _ in range(2)]
        return {**bits[0], "second": bits[1]["positive"]}

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return the loss of both bits together."""
        second_message: dict[str, Any] = {**messages, "positive": messages["second"]}
        loss = super().log_ratio(task, first, second, messages)
        return loss + super().log_ratio(task, first, second, second_message)


class LargeShareNotSplit(Report):
    """Gives the label all of epsilon where its share is above a half."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return z (n, d) and label (n,), the latter with too little noise."""
        columns = super().draw(task, data, entropy)
        if task.label_share == "equal" or float(task.label_share) <= 0.5:
            return columns
        label = BinaryRR(epsilon=task.epsilon).randomize(data.signs, entropy)
        return {**columns, "label": label.astype(np.int8)}


# No gradient of a record in [-1, 1]^d is so long.
_FAR = 1e3


class GradientUnclipped(Gradient):
    """Noises which way a gradient goes, and lets it be longer than its bound."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return noised gradients, as much longer as none was clipped."""
        noised, encoder = (
            super().draw(task, data, entropy)["gradient"],
            task_gradients(task),
        )
        of_label = class_codes(data.labels, encoder.n_classes)
        loose = replace(encoder, clip=_FAR).vectors(data.z, of_label)
        length = _FAR / encoder.clip * np.linalg.norm(loose[:, :-1], axis=1)
        return {"gradient": noised * np.maximum(length, 1)[:, None]}


class BinsFromData(Answer):
    """Puts the edges of bins at the clients' own quantiles, which nobody hid."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return answers about bins that the other clients' records moved."""
        thresholds = np.asarray(task.params["threshold"])
        shares = np.arange(1, thresholds.shape[1] + 1) / (thresholds.shape[1] + 1)
        edges = np.quantile(data.z, shares, axis=0).T
        params = {**task.params, "threshold": edges.tolist()}
        return super().draw(replace(task, params=params), data, entropy)


class TwoFeatures(Answer):
    """Asks each client about two numbers, with the whole budget for each."""

    def max_privacy_loss(self, task: Task) -> float:
        """Return the loss of both answers together."""
        return 2 * super().max_privacy_loss(task)

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return an answer to one question, and one to the question after it."""
        columns = super().draw(task, data, entropy)
        second_truth = true_answers(
            task, data, _next_question(task, columns["question"])
        )
        return {
            **columns,
            "second": answer_mechanism(task).randomize(second_truth, entropy),
        }

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return the loss of both answers together."""
        question = _next_question(task, messages["question"])
        second_message = {"question": question, "answer": messages["second"]}
        loss = super().log_ratio(task, first, second, messages)
        return loss + super().log_ratio(task, first, second, second_message)


def _next_question(task: Task, question: NDArray[np.int64]) -> NDArray[np.int64]:
    return (question + 1) % len(task.params["threshold"])


def _cell_twin(kind: Callable[..., Answer], epsilon: float) -> MessageSubject:
    message = kind(
        what=COUNTS_ANSWER.what, nominal_partitions=COUNTS_ANSWER.nominal_partitions
    )
    honest = record_subject_of(example("counts", message.name, epsilon))
    return replace(honest, message=message)


def cell_twins() -> dict[str, Callable[[float], MessageSubject]]:
    """Return the twins by name."""
    kinds = {"bins_from_data": BinsFromData, "two_features": TwoFeatures}
    return {name: partial(_cell_twin, kind) for name, kind in kinds.items()}
