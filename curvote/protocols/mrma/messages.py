"""The two messages of MRMA: a report, then a vote of somebody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat

from curvote.chain.sent import Sent
from curvote.chain.stage import Columns
from curvote.classifier import sign
from curvote.client.report import Reporter
from curvote.client.vote import decisions, vote
from curvote.entropy import Entropy, is_study, stream
from curvote.errors import InternalError
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.mechanisms.laplace import Laplace
from curvote.privacy import label_share
from curvote.protocols.fields import check_fields
from curvote.protocols.message import (
    Known,
    Message,
    Read,
    Setting,
)
from curvote.protocols.mrma.tables import REPORT_VARIANTS, variant
from curvote.protocols.payloads import Payload
from curvote.protocols.questions import answers, one_against_rest
from curvote.protocols.roles import TRAINING, VOTERS
from curvote.representation.encoding import Encoding, judged
from curvote.task import Candidates, Task

Array = NDArray[np.float64]


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

    def words(self, config: Mapping[str, Any], d: int) -> Sequence[Sent]:
        """Return a report in words: how its budget is shared out."""
        privatize = config["privatize"]
        share = label_share(privatize["label_share"], d)
        what = f"one report: {d} noised numbers and a noised label"
        detail = (
            f"epsilon x {(1 - share) / d:.3g} for each number,"
            f" epsilon x {share:.3g} for the label"
        )
        mechanism = f"{privatize['mechanism']} and {BinaryRR.name}"
        return [Sent(self.who, what, mechanism, detail)]

    def terms(self, setting: Setting, encoding: Encoding) -> dict[str, Any]:
        """Return the mechanism of the numbers and the label's part of the budget."""
        names = ("mechanism", "params", "label_share")
        return {name: setting(f"privatize.{name}") for name in names}

    def least(self, config: Mapping[str, Any]) -> int:
        """Return how many reports one weak classifier learns from."""
        return int(config["train"]["size"])

    def rehearsal(self, stated: Task) -> Task:
        """Return the stated task, with Laplace noise where it names none."""
        return replace(stated, mechanism=stated.mechanism or Laplace.name)

    def admit(self, task: Task) -> None:
        """Refuse parameters from which no mechanism can be built, and candidates."""
        check_fields(task, params=None, binary=self.binary)
        Reporter.of(task)

    def worst_loss(self, task: Task) -> float:
        """Return the loss of the features and of the label together."""
        reporter = Reporter.of(task)
        parts = reporter.features, reporter.label
        return sum(part.worst_log_ratio() for part in parts)

    def numbers(self, task: Task) -> int:
        """Return d, the numbers of z."""
        return task.encoding.d

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return z (n, d) and label (n,), both noised."""
        noise = stream(entropy, "feature_noise"), stream(entropy, "label_noise")
        release = Reporter.of(task).release
        z, label = release(known.z, known.signs, *noise, study=is_study(entropy))
        return {"z": z, "label": label.astype(np.int8)}

    def possible(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each report whether its numbers are outputs of the mechanism."""
        if messages["z"].ndim != 2 or messages["z"].shape[1] != task.encoding.d:
            return np.zeros(len(messages["label"]), dtype=bool)
        return Reporter.of(task).possible(messages)

    def log_ratio(
        self, task: Task, one: Known, other: Known, messages: Columns
    ) -> Array:
        """Return the privacy loss of z and label together."""
        pairs = (one.z, one.signs), (other.z, other.signs)
        return Reporter.of(task).log_ratio(*pairs, messages)

    def gather(self, task: Task, messages: Columns) -> Columns:
        """Return the table ``reports``, numbers that are too rare cut off."""
        n = len(messages["label"])
        own = np.full(n, REPORT_VARIANTS.index("mrma"), dtype=np.int8)
        label = messages["label"].astype(np.int8)
        z = Reporter.of(task).trimmed(messages["z"].reshape(n, -1))
        return {"arm": own, "z": z, "label": label}


class Pooled(Report):
    """A voter's report as well, for what learns from everybody's: studies only."""

    senders, who = VOTERS, "evaluation client"

    def words(self, config: Mapping[str, Any], d: int) -> Sequence[Sent]:
        """Return the report in words, and what it is for."""
        what = f"a report as well: {d} noised numbers and a noised label"
        detail = (
            "for voting, averaging and all_data, which learn from everybody's report"
        )
        (report,) = super().words(config, d)
        return [replace(report, what=what, detail=detail)]


class Vote(Message):
    """An evaluation client's noised bit about one candidate (MRMA eqs 6 and 7).

    Candidates answer the ``questions`` in turn; of two classes there is one.
    """

    binary = True
    questions = staticmethod(one_against_rest)
    name, stage, table = "vote", "evaluate", "votes"
    senders, payload = VOTERS, VotePayload
    counted = ("n", "positive")
    who, what = "evaluation client", 'one noised bit: "the classifier was right for me"'
    mechanism = BinaryRR.name
    detail = "each judges one classifier, once, with the whole budget"

    def terms(self, setting: Setting, encoding: Encoding) -> dict[str, Any]:
        """Return the mechanism of the bit: nothing is left to the configuration."""
        return {"mechanism": BinaryRR.name}

    def task(self, stated: Task, read: Read) -> Task:
        """Return the stated task with the weak classifiers that are up for a vote."""
        up = Candidates(*variant(read("train", "weak"), "weak"))
        # The bit is randomized response: the report's mechanism has no part in it.
        return replace(stated, asks=self.name, candidates=up, params={})

    def rehearsal(self, stated: Task) -> Task:
        """Return the stated task with each axis, and its reverse, up for a vote."""
        d = stated.encoding.d
        up = Candidates(np.vstack([np.eye(d), -np.eye(d)]), np.zeros(2 * d))
        named = stated.mechanism or BinaryRR.name
        return replace(stated, mechanism=named, candidates=up, params={})

    def admit(self, task: Task) -> None:
        """Refuse a task without candidates, or with parameters: the bit has none."""
        check_fields(task, candidates=True, binary=self.binary)

    def worst_loss(self, task: Task) -> float:
        """Return the loss of the one bit."""
        return BinaryRR(epsilon=task.epsilon).worst_log_ratio()

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return the candidate of each client and its noised bit."""
        decision, truth = _decisions(task, known), self._truth(task, known)
        positive = vote(decision, truth, task.epsilon, stream(entropy, "vote"))
        return {"learner": np.asarray(known.judge), "positive": positive}

    def possible(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each vote whether it is about a candidate."""
        return np.asarray(messages["learner"] < len(_candidates(task).coef))

    def log_ratio(
        self, task: Task, one: Known, other: Known, messages: Columns
    ) -> Array:
        """Return the privacy loss of the bit; the candidate is the server's choice."""
        at = np.where(messages["positive"], 1.0, -1.0)
        truths = self._right(task, one), self._right(task, other)
        return BinaryRR(epsilon=task.epsilon).log_ratio(truths[0], truths[1], at)

    def gather(self, task: Task, messages: Columns) -> Columns:
        """Return the table ``votes``: counts for each candidate."""
        count = len(_candidates(task).coef)
        learner, positive = messages["learner"], messages["positive"]
        votes = np.bincount(learner, minlength=count)
        yes = np.bincount(learner, weights=positive, minlength=count)
        return {"learner": np.arange(count), "n": votes, "positive": yes.astype(int)}

    def _truth(self, task: Task, known: Known) -> Array:
        """Return the right answer (n,) of each client to its candidate's question."""
        code = self.questions(len(task.classes))
        return answers(code, np.asarray(known.judge), known.labels)

    def _right(self, task: Task, known: Known) -> Array:
        """Return +1 where the candidate is right for the client, else -1."""
        told = sign(_decisions(task, known))
        return np.where(told == self._truth(task, known), 1.0, -1.0)


def _candidates(task: Task) -> Candidates:
    if task.candidates is None:
        raise InternalError("a task that asks for votes names no candidates")
    return task.candidates


def _decisions(task: Task, known: Known) -> Array:
    up = _candidates(task)
    encoding = task.encoding
    own = known.coefficients, known.z
    features = judged(encoding.feature_map, *own, encoding.projection.gram)
    return decisions(features, up.coef, up.intercept, np.asarray(known.judge))


MESSAGES = {"report": Report(), "vote": Vote()}
