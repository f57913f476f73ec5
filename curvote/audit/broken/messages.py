"""Twins of what leaves a client: each part is within the budget, not the whole."""

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
from curvote.protocols.message import Known
from curvote.protocols.mrma.messages import Report, Vote
from curvote.task import Task

Array = NDArray[np.float64]


def _twice(task: Task) -> Task:
    """Return the task at which label and features get the task's epsilon each."""
    return replace(task, epsilon=2 * task.epsilon, label_share=0.5)


class ReportNotSplit(Report):
    """Spends the full epsilon on the label and again on the features."""

    def worst_loss(self, task: Task) -> float:
        """Return the loss that is really spent."""
        return super().worst_loss(_twice(task))

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return z (n, d) and label (n,), both noised."""
        return super().draw(_twice(task), known, entropy)

    def log_ratio(
        self, task: Task, one: Known, other: Known, messages: Columns
    ) -> Array:
        """Return the loss that is really spent."""
        return super().log_ratio(_twice(task), one, other, messages)


class NakedLabel(Report):
    """Noises the features, and forgets the label."""

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return noised z (n, d) and the true label (n,)."""
        sent = super().draw(task, known, entropy)
        return {**sent, "label": known.signs.astype(np.int8)}


class QuietLabelBin(Report):
    """Forgets the label's noise where the first number lies in a bin of width .01."""

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return noised z (n, d) and a label (n,) that is the true one in the bin."""
        sent = super().draw(task, known, entropy)
        quiet = np.abs(known.z[:, 0] - 0.305) < 0.005
        truth = known.signs.astype(np.int8)
        return {**sent, "label": np.where(quiet, truth, sent["label"])}


class DirectionTwice(Direction):
    """Spends the full epsilon on the label moment and again on the second moment."""

    def worst_loss(self, task: Task) -> float:
        """Return the loss of both vectors together."""
        return 2 * super().worst_loss(task)

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return two noised vectors of one record."""
        sent = [super(DirectionTwice, self).draw(task, known, entropy) for _ in "ab"]
        return {**sent[0], "second": sent[1]["direction"]}

    def log_ratio(
        self, task: Task, one: Known, other: Known, messages: Columns
    ) -> Array:
        """Return the loss of both vectors together."""
        second: dict[str, Any] = {"direction": messages["second"]}
        first = super().log_ratio(task, one, other, messages)
        return first + super().log_ratio(task, one, other, second)


class LabelBeside(Direction):
    """Noises which way a record lies, and sends the label beside it."""

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return the noised vectors of records without labels, and the labels."""
        bare = replace(known, labels=np.ones(len(known.labels)))
        sent = super().draw(task, bare, entropy)
        return {**sent, "label": known.labels}


class LabelBesideCode(Direction):
    """Hides the code of one of several classes, and names the class beside it.

    By k-RR, with the epsilon that the direction has spent.
    """

    def worst_loss(self, task: Task) -> float:
        """Return the loss of both parts together."""
        return super().worst_loss(task) + _named(task).worst_log_ratio()

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return the noised vectors, and noised labels of the same records."""
        sent = super().draw(task, known, entropy)
        return {**sent, "label": _named(task).randomize(known.labels, entropy)}

    def log_ratio(
        self, task: Task, one: Known, other: Known, messages: Columns
    ) -> Array:
        """Return the loss of both parts together."""
        pair = one.labels.astype(np.int64), other.labels.astype(np.int64)
        label = _named(task).log_ratio(*pair, messages["label"])
        return super().log_ratio(task, one, other, messages) + label


def _named(task: Task) -> KRR:
    return KRR(epsilon=task.epsilon, n_classes=len(task.classes))


class CornerOfWrongLength(Direction):
    """Gives classes codes of several lengths, to which it stretches the answer.

    So its mean is right, and its length is the class.
    """

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return the noised vectors, as long as the codes of their classes."""
        sent = super().draw(task, known, entropy)["direction"]
        lengths = np.linspace(1, 2, len(task.classes))[known.labels.astype(np.int64)]
        return {"direction": sent * lengths[:, None]}


class VoteTwice(Vote):
    """Answers twice about its candidate, with epsilon each time."""

    def worst_loss(self, task: Task) -> float:
        """Return the loss of both bits together."""
        return 2 * super().worst_loss(task)

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return two noised bits about the candidate."""
        bits = [super(VoteTwice, self).draw(task, known, entropy) for _ in range(2)]
        return {**bits[0], "second": bits[1]["positive"]}

    def log_ratio(
        self, task: Task, one: Known, other: Known, messages: Columns
    ) -> Array:
        """Return the loss of both bits together."""
        second: dict[str, Any] = {**messages, "positive": messages["second"]}
        first = super().log_ratio(task, one, other, messages)
        return first + super().log_ratio(task, one, other, second)


class LargeShareNotSplit(Report):
    """Gives the label all of epsilon where its share is above a half."""

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return z (n, d) and label (n,), the latter with too little noise."""
        sent = super().draw(task, known, entropy)
        if task.label_share == "equal" or float(task.label_share) <= 0.5:
            return sent
        label = BinaryRR(epsilon=task.epsilon).randomize(known.signs, entropy)
        return {**sent, "label": label.astype(np.int8)}
