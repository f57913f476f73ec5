"""Broken twins of messages: each part is within the budget, not the message."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns
from curvote.entropy import Entropy
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.mechanisms.k_rr import KRR
from curvote.protocols.direct.messages import Direction
from curvote.protocols.message import ClientData
from curvote.protocols.mrma.messages import Report, Vote
from curvote.task import Task

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
