"""Broken twins of messages about one record: fields, budgets, labels."""

from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import Entropy
from curvote.base.validate import FloatArray
from curvote.chain.stage import Columns
from curvote.curves.direction import class_codes
from curvote.mechanisms.alibi import Alibi
from curvote.mechanisms.frequency_oracles import UnarySymmetric
from curvote.mechanisms.randomized_response import KRR, BinaryRR
from curvote.messages.message import ClientData, Message
from curvote.systems.cells import messages as cells
from curvote.systems.common.judgement import ReleaseJudgement
from curvote.systems.direct.messages import Direction, Gradient, task_gradients
from curvote.systems.labels import messages as labels
from curvote.systems.labels.messages import CODE, PRIOR
from curvote.systems.monitor.messages import Answer
from curvote.systems.mrma.messages import Report, Vote
from curvote.systems.pilot.messages import Judgement
from curvote.systems.volunteers.messages import HalfWhitened
from curvote.wire.task import Task


def _double_budget_task(task: Task) -> Task:
    """Return the task at which label and features get all of epsilon each."""
    return replace(task, epsilon=2 * task.epsilon, label_share=0.5)


class ReportNotSplit(Report):
    """Spends the full epsilon on the label and again on the features."""

    def max_privacy_loss(self, task: Task) -> float:
        return super().max_privacy_loss(_double_budget_task(task))

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        return super().draw(_double_budget_task(task), data, entropy)

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> FloatArray:
        return super().log_ratio(_double_budget_task(task), first, second, messages)


class NakedLabel(Report):
    """Noises the features, and forgets the label."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        columns = super().draw(task, data, entropy)
        return {**columns, "label": data.signs.astype(np.int8)}


class QuietLabelBin(Report):
    """Forgets the label's noise where the first number lies in a bin of width .01."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        columns = super().draw(task, data, entropy)
        quiet = np.abs(data.z[:, 0] - 0.305) < 0.005
        truth = data.signs.astype(np.int8)
        return {**columns, "label": np.where(quiet, truth, columns["label"])}


class _Twice(Message):
    """Sends one field of a message twice, with epsilon each time."""

    repeated: ClassVar[str]

    @property
    def _single(self) -> Any:
        return super()

    def max_privacy_loss(self, task: Task) -> float:
        loss: float = 2 * self._single.max_privacy_loss(task)
        return loss

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        first, second = (self._single.draw(task, data, entropy) for _ in "ab")
        return {**first, "second": second[self.repeated]}

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> FloatArray:
        repetition = {**messages, self.repeated: messages["second"]}
        loss: FloatArray = self._single.log_ratio(task, first, second, messages)
        more: FloatArray = self._single.log_ratio(task, first, second, repetition)
        return loss + more


class DirectionTwice(_Twice, Direction):
    """Spends the full epsilon on the label moment and again on the second moment."""

    repeated = "direction"


class VoteTwice(_Twice, Vote):
    """Answers twice about its candidate, with epsilon each time."""

    repeated = "positive"


class JudgementTwice(_Twice, ReleaseJudgement):
    """Answers twice about the released classifier, with epsilon each time."""

    repeated = "right"


class QuietWhereRight(ReleaseJudgement):
    """Noises a judge's bit only where the classifier is wrong."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        noised = super().draw(task, data, entropy)["right"]
        return {"right": noised | (self.true_signs(task, data) > 0)}


class AnswerNotSplit(Answer):
    """Noises the group and the word with epsilon each, as if they were one."""

    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        codes = super().draw(task, data, entropy)[CODE]
        half = KRR(epsilon=task.epsilon, n_classes=2)
        groups = half.randomize(data.labels.astype(np.int64) % 2, entropy)
        return {CODE: codes, "group": groups}


class QuietWhereSure(Answer):
    """Noises an answer only where the word is not the last one."""

    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        codes = super().draw(task, data, entropy)[CODE]
        last = data.labels == task.label_count - 1
        return {CODE: np.where(last, data.labels.astype(codes.dtype), codes)}


class AnswerTwice(_Twice, Answer):
    """Answers in two windows at once, with epsilon each time."""

    repeated = CODE


class JudgesBoth(Judgement):
    """Answers about both rules, with epsilon each time."""

    def max_privacy_loss(self, task: Task) -> float:
        return 2 * super().max_privacy_loss(task)

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        second = super().draw(task, _other_rule(data), entropy)
        return {**super().draw(task, data, entropy), "second": second["positive"]}

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> FloatArray:
        loss = super().log_ratio(task, first, second, messages)
        others = _other_rule(first), _other_rule(second)
        repetition = {**messages, "positive": messages["second"]}
        return loss + super().log_ratio(task, *others, repetition)


def _other_rule(data: ClientData) -> ClientData:
    return replace(data, candidate=1 - np.asarray(data.candidate))


class WhitenedLength(HalfWhitened):
    """Noises which way a record lies in the new coordinates, and keeps its length."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        noised = super().draw(task, data, entropy)["direction"]
        moved, _ = self._record_arrays(task, data)
        length = np.hypot(1, np.linalg.norm(moved, axis=1))
        return {"direction": noised * length[:, None]}


class LabelBeside(Direction):
    """Noises which way a record lies, and sends the label beside it."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        bare = replace(data, labels=np.ones(len(data.labels)))
        columns = super().draw(task, bare, entropy)
        return {**columns, "label": data.labels}


class LabelBesideCode(Direction):
    """Hides the code of one of several classes, and names the class beside it.

    By k-RR, with the epsilon that the direction has spent.
    """

    def max_privacy_loss(self, task: Task) -> float:
        return super().max_privacy_loss(task) + _label_mechanism(task).worst_log_ratio()

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        columns = super().draw(task, data, entropy)
        label = _label_mechanism(task).randomize(data.labels, entropy)
        return {**columns, "label": label}

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> FloatArray:
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
        directions = super().draw(task, data, entropy)["direction"]
        lengths = np.linspace(1, 2, len(task.classes))[data.labels.astype(np.int64)]
        return {"direction": directions * lengths[:, None]}


class LargeShareNotSplit(Report):
    """Gives the label all of epsilon where its share is above a half."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
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
        noised = super().draw(task, data, entropy)["gradient"]
        encoder = task_gradients(task)
        of_label = class_codes(data.labels, encoder.n_classes)
        loose = replace(encoder, clip=_FAR).vectors(data.z, of_label)
        length = _FAR / encoder.clip * np.linalg.norm(loose[:, :-1], axis=1)
        return {"gradient": noised * np.maximum(length, 1)[:, None]}


class TwoFeatures(cells.Answer):
    """Asks each client about two numbers, with the whole budget for each."""

    def max_privacy_loss(self, task: Task) -> float:
        return 2 * super().max_privacy_loss(task)

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        columns = super().draw(task, data, entropy)
        truth = cells.true_answers(
            task, data, _next_question(task, columns["question"])
        )
        second = cells.answer_mechanism(task).randomize(truth, entropy)
        return {**columns, "second": second}

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> FloatArray:
        question = _next_question(task, messages["question"])
        second_message = {"question": question, "answer": messages["second"]}
        loss = super().log_ratio(task, first, second, messages)
        return loss + super().log_ratio(task, first, second, second_message)


def _next_question(task: Task, question: NDArray[np.int64]) -> NDArray[np.int64]:
    return (question + 1) % len(task.params["threshold"])


class AlibiHalfScale(Alibi):
    """Noise of scale 1/epsilon: takes 1 for the sensitivity of a one-hot label."""

    def __init__(self, *, epsilon: float, n_classes: int) -> None:
        super().__init__(epsilon=epsilon, n_classes=n_classes)
        self.noise = Alibi(epsilon=2 * epsilon, n_classes=n_classes).noise

    def worst_log_ratio(self) -> float:
        return super().worst_log_ratio() / 2


class OneBitCounted(UnarySymmetric):
    """Flips bits at the full epsilon each, and counts one of the two that differ."""

    def __init__(self, *, epsilon: float, n_classes: int) -> None:
        super().__init__(epsilon=2 * epsilon, n_classes=n_classes)
        self.epsilon = epsilon

    def worst_ratio(self) -> Fraction:
        return self.p / self.q


class CodeEachEpoch(labels.CodeMessage):
    """Noises the label anew for each of two passes over the data."""

    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        first = super().draw(task, data, entropy)
        return {**first, "second": super().draw(task, data, entropy)[CODE]}


class PriorFromLabels(labels.LikelyCodeMessage):
    """Takes the label itself for likely: its prior is five times any other label's."""

    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        places = np.arange(len(task.classes))
        priors = 1 + 4.0 * (data.labels[:, None] == places)
        return super().draw(task, replace(data, public={PRIOR: priors}), entropy)


class BothRounds(labels.LikelyCodeMessage):
    """Asks the first round's clients again: each round is within epsilon, not both."""

    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        first = labels.FIRST_ROUND.draw(replace(task, encoder="k_rr"), data, entropy)
        return {**super().draw(task, data, entropy), "first": first[CODE]}


class WordBeside(labels.CodeMessage):
    """Noises the label, and sends the private word beside it as it is."""

    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        n_words = len(task.words["tier"])
        word = data.labels.astype(np.int64) % n_words
        bare = replace(data, labels=data.labels - word)
        return {**super().draw(task, bare, entropy), "word": word}


class WordTwice(labels.CodeMessage):
    """Spends epsilon on the label, and as much again on its private word."""

    def max_privacy_loss(self, task: Any) -> float:
        return 2 * super().max_privacy_loss(task)

    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        word = data.labels.astype(np.int64) % len(task.words["tier"])
        parts = replace(data, labels=data.labels - word), replace(data, labels=word)
        label, own = (super(WordTwice, self).draw(task, x, entropy) for x in parts)
        return {**label, "word": own[CODE]}


class LabelInFeatures(labels.CodeMessage):
    """Noises the label, and leaves it among the features that are published."""

    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        features = np.column_stack([data.coefficients, data.labels])
        return {**super().draw(task, data, entropy), "features": features}
