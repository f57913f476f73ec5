"""Messages of MRMA and its variants: a report, then a vote of somebody else."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat

from curvote.base.accounting import TruncatedGaussian
from curvote.base.entropy import Entropy, is_study, stream
from curvote.base.errors import InternalError
from curvote.base.privacy import label_budget_share
from curvote.chain.stage import Columns
from curvote.chain.system import MessageDescription
from curvote.client.report import Reporter, candidate_scores, draw_votes
from curvote.curves.encoding import Encoding, classifier_features, decision_sign
from curvote.mechanisms.base import Mechanism
from curvote.mechanisms.exact import uniform_below
from curvote.mechanisms.gaussian import Gaussian
from curvote.mechanisms.laplace import Laplace
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.messages.message import (
    Array,
    ClientData,
    Message,
    Payload,
    SettingReader,
    TableReader,
    check_fields,
)
from curvote.messages.roles import EVERYBODY, TRAINING, VOTERS
from curvote.systems.common.judgement import ReleaseJudgement
from curvote.systems.common.questions import (
    answer_questions,
    complete_labels,
    halving_code,
    one_against_rest_code,
)
from curvote.systems.common.tables import REPORT_VARIANTS, lines_of_variant
from curvote.wire.task import Candidates, Task


class ReportPayload(Payload):
    """A report as JSON: d noised numbers and a noised label."""

    z: list[FiniteFloat]
    label: Literal[-1, 1]


class VotePayload(Payload):
    """A vote as JSON: the candidate's number, and the noised bit."""

    learner: Annotated[int, Field(ge=0)]
    positive: bool


class Report(Message):
    """A training client's noised z and label (MRMA section 5.1)."""

    name, stage, table = "report", "privatize", "reports"
    senders, bounded = TRAINING, True
    payload: type[Payload] = ReportPayload
    who = "training client"
    binary = True

    def describe(
        self, config: Mapping[str, Any], d: int
    ) -> Sequence[MessageDescription]:
        """Return the description of a report and how its budget is shared."""
        privatize = config["privatize"]
        share = label_budget_share(privatize["label_share"], d)
        what = f"one report: {d} noised numbers and a noised label"
        detail = (
            f"epsilon x {(1 - share) / d:.3g} for each number,"
            f" epsilon x {share:.3g} for the label"
        )
        mechanism = f"{privatize['mechanism']} and {BinaryRR.name}"
        return [MessageDescription(self.who, what, mechanism, detail)]

    def terms(self, setting: SettingReader, encoding: Encoding) -> dict[str, Any]:
        """Return the mechanism of the numbers and the label's part of the budget."""
        names = ("mechanism", "params", "label_share")
        return {name: setting(f"privatize.{name}") for name in names}

    def min_messages(self, config: Mapping[str, Any]) -> int:
        """Return how many reports one weak classifier learns from."""
        return int(config["train"]["size"])

    def nominal_task(self, base_task: Task) -> Task:
        """Return the base task, with Laplace noise where it names none."""
        return replace(base_task, mechanism=base_task.mechanism or Laplace.name)

    def check_task(self, task: Task) -> None:
        """Refuse parameters from which no mechanism can be built, and candidates."""
        check_fields(task, params=None, binary=self.binary)
        Reporter.for_task(task)

    def mechanisms(self, task: Task, n: int | None = None) -> Sequence[Mechanism]:
        """Return that of the features, and that of the label."""
        reporter = Reporter.for_task(task)
        return reporter.features, reporter.label

    def shuffled_law(self, task: Task) -> TruncatedGaussian | None:
        """Return the law of Gaussian numbers beside a label; None of others."""
        reporter = Reporter.for_task(task)
        numbers, d = reporter.features, task.encoding.d
        if not isinstance(numbers, Gaussian):
            return None
        pure = reporter.label.epsilon
        return TruncatedGaussian(pure, numbers.sigma, math.sqrt(d), d)

    def count_numbers(self, task: Task) -> int:
        """Return d, the numbers of z."""
        return task.encoding.d

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return z (n, d) and label (n,), both noised."""
        noise = stream(entropy, "feature_noise"), stream(entropy, "label_noise")
        release = Reporter.for_task(task).release
        z, label = release(data.z, data.signs, *noise, study=is_study(entropy))
        return {"z": z, "label": label.astype(np.int8)}

    def possible_mask(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each report whether its numbers are outputs of the mechanism."""
        if messages["z"].ndim != 2 or messages["z"].shape[1] != task.encoding.d:
            return np.zeros(len(messages["label"]), dtype=bool)
        return Reporter.for_task(task).possible(messages)

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return the privacy loss of z and label together."""
        pairs = (first.z, first.signs), (second.z, second.signs)
        return Reporter.for_task(task).log_ratio(*pairs, messages)

    def collect(self, task: Task, messages: Columns) -> Columns:
        """Return the table ``reports``, numbers that are too rare cut off."""
        n = len(messages["label"])
        variants = np.full(n, REPORT_VARIANTS.index("mrma"), dtype=np.int8)
        label = messages["label"].astype(np.int8)
        z = Reporter.for_task(task).trimmed(messages["z"].reshape(n, -1))
        return {"arm": variants, "z": z, "label": label}


class Pooled(Report):
    """Report of a voter, for what learns from everybody's: studies only."""

    senders, who = VOTERS, "evaluation client"

    def describe(
        self, config: Mapping[str, Any], d: int
    ) -> Sequence[MessageDescription]:
        """Return the description of the report, and its purpose."""
        what = f"a report as well: {d} noised numbers and a noised label"
        detail = (
            "for voting, averaging and all_data, which learn from everybody's report"
        )
        (report,) = super().describe(config, d)
        return [replace(report, what=what, detail=detail)]


class Vote(Message):
    """An evaluation client's noised bit about one candidate (MRMA eqs 6 and 7).

    Candidates answer the ``questions`` in turn; of two classes there is one.
    """

    binary = True
    questions = staticmethod(one_against_rest_code)
    name, stage, table = "vote", "evaluate", "votes"
    senders, payload = VOTERS, VotePayload
    count_columns = ("n", "positive")
    summed = True
    who, what = "evaluation client", 'one noised bit: "the classifier was right for me"'
    mechanism = BinaryRR.name
    detail = "each judges one classifier, once, with the whole budget"

    def task(self, base_task: Task, read: TableReader) -> Task:
        """Return the base task with the weak classifiers up for a vote."""
        candidates = Candidates(*lines_of_variant(read("train", "weak"), "weak"))
        # The bit is randomized response: the report's mechanism has no part in it.
        return replace(base_task, asks=self.name, candidates=candidates, params={})

    def nominal_task(self, base_task: Task) -> Task:
        """Return the base task with each axis, and its reverse, as candidates."""
        d = base_task.encoding.d
        candidates = Candidates(np.vstack([np.eye(d), -np.eye(d)]), np.zeros(2 * d))
        named = base_task.mechanism or BinaryRR.name
        return replace(base_task, mechanism=named, candidates=candidates, params={})

    def check_task(self, task: Task) -> None:
        """Refuse a task without candidates, or with parameters: the bit has none."""
        check_fields(task, candidates=True, binary=self.binary)

    def mechanisms(self, task: Task, n: int | None = None) -> Sequence[Mechanism]:
        """Return that of the one bit."""
        return (BinaryRR(epsilon=task.epsilon),)

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return the candidate of each client and its noised bit."""
        decision = self.decisions(task, data)
        truth = self._right_answers(task, data)
        positive = draw_votes(decision, truth, task.epsilon, stream(entropy, "vote"))
        return {"learner": np.asarray(data.candidate), "positive": positive}

    def possible_mask(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each vote whether it is about a candidate."""
        return np.asarray(messages["learner"] < len(_task_candidates(task).coef))

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return the privacy loss of the bit; the candidate is the server's choice."""
        bits = np.where(messages["positive"], 1.0, -1.0)
        ours, theirs = (
            decision_sign(self.decisions(task, data)) * self._right_answers(task, data)
            for data in (first, second)
        )
        return BinaryRR(epsilon=task.epsilon).log_ratio(ours, theirs, bits)

    def collect(self, task: Task, messages: Columns) -> Columns:
        """Return the table ``votes``: counts for each candidate."""
        count = len(_task_candidates(task).coef)
        learner, positive = messages["learner"], messages["positive"]
        votes = np.bincount(learner, minlength=count)
        yes = np.bincount(learner, weights=positive, minlength=count)
        return {"learner": np.arange(count), "n": votes, "positive": yes.astype(int)}

    def decisions(self, task: Task, data: ClientData) -> Array:
        """Return the score of each client by its candidate, (n,)."""
        candidates, encoding = _task_candidates(task), task.encoding
        arrays = data.coefficients, data.z, encoding.projection.gram
        features = classifier_features(encoding.feature_map, *arrays)
        lines = candidates.coef, candidates.intercept
        return candidate_scores(features, *lines, np.asarray(data.candidate))

    def _right_answers(self, task: Task, data: ClientData) -> Array:
        """Return the right answer (n,) of each client to its candidate's question."""
        code = self.questions(len(task.classes))
        return answer_questions(code, np.asarray(data.candidate), data.labels)


def _task_candidates(task: Task) -> Candidates:
    if task.candidates is None:
        raise InternalError("a task that asks for votes names no candidates")
    return task.candidates


class ClassReportPayload(ReportPayload):
    """A report as JSON: a class's place, d noised numbers and a noised answer."""

    question: Annotated[int, Field(ge=0)]


class ClassReport(Report):
    """Report of a training client: a class, noised z, noised answer.

    The class is public and no data decides it. Who trains draws it by a coin that no
    record touches and sends it in the clear beside the noised z and the noised answer
    to "is it this class?", on which the whole budget is spent.
    """

    table, binary = "class_reports", False
    payload = ClassReportPayload

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
        first = _answer_data(task, first, questions)
        second = _answer_data(task, second, questions)
        return super().log_ratio(task, first, second, messages)

    def collect(self, task: Task, messages: Columns) -> Columns:
        """Return the table ``class_reports``, numbers that are too rare cut off."""
        return super().collect(task, messages) | {"question": messages["question"]}


class ClassVote(Vote):
    """An evaluation client's noised bit: is it right for me about its class?

    A voter's class follows from its candidate: candidate b is about class b mod K.
    """

    binary = False
    what = 'one noised bit: "the classifier was right for me about its class"'
    detail = "each judges one classifier of one class, once, with the whole budget"


def _question_count(task: Task) -> int:
    return len(one_against_rest_code(len(task.classes)))


def _answer_data(
    task: Task, data: ClientData, questions: NDArray[np.int64]
) -> ClientData:
    """Return the clients' data with answers as labels, 1 for yes."""
    code = one_against_rest_code(len(task.classes))
    replies = answer_questions(code, questions, data.labels)
    return replace(data, labels=(replies > 0).astype(np.int64))


class DirectionVote(Vote):
    """A vote as MRMA's voters send it, from everybody, about any number of classes."""

    binary = False
    questions = staticmethod(halving_code)
    senders, who = EVERYBODY, "every client"
    what = 'one noised bit: "the direction was right for me"'
    detail = "each judges one random direction, once, with the whole budget"


def ensemble_lines(
    code: Callable[[int], Array], task: Task, read: TableReader
) -> Columns:
    """Return the lines of the average of classifiers that answer a code's questions."""
    from curvote.systems.common import models  # no client needs it

    lines = lines_of_variant(read("train", "weak"), "weak")
    weights = models.signed_weights(read("aggregate", "ensemble"))
    coef, intercept = models.combine_lines(code(len(task.classes)), lines, weights)
    return {"coef": coef, "intercept": intercept}


JUDGEMENT = {
    "judgement": ReleaseJudgement(partial(ensemble_lines, one_against_rest_code))
}
MESSAGES: dict[str, Message] = {"report": Report(), "vote": Vote(), **JUDGEMENT}
MESSAGES_BY_SYSTEM: dict[str, dict[str, Message]] = {
    "mrma": MESSAGES,
    "mrma_classes": {"report": ClassReport(), "vote": ClassVote(), **JUDGEMENT},
    "votes": {
        "vote": DirectionVote(),
        "judgement": ReleaseJudgement(partial(ensemble_lines, halving_code)),
    },
    "drift": {"report": Report()},
    "auto": {},  # its choice sends its own
}
