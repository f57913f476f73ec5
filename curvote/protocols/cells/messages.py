"""The message of `counts`, `stump` and `tree`: a noised cell and class, in one word."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from curvote import validate
from curvote.chain.stage import Columns
from curvote.classes import places
from curvote.entropy import Entropy, stream
from curvote.errors import UserError
from curvote.mechanisms import exact
from curvote.mechanisms.k_rr import KRR
from curvote.protocols.fields import check_fields
from curvote.protocols.message import Known, Message, Read, Setting
from curvote.protocols.payloads import Payload
from curvote.protocols.roles import EVERYBODY, Senders
from curvote.representation.encoding import Encoding
from curvote.representation.partition import PARTS, Partitions
from curvote.task import Task

Array = NDArray[np.float64]
Index = NDArray[np.int64]
# Of cells and classes together; more would leave no answer above the noise.
MOST_ANSWERS: Final = 1 << 12


class AnswerPayload(Payload):
    """Which question it answers, and the noised answer: cell K + class."""

    question: Annotated[int, Field(ge=0)]
    answer: Annotated[int, Field(ge=0)]


@dataclass(frozen=True, kw_only=True)
class Answer(Message):
    """A client's cell of one public partition and its class, by k-RR in one word.

    The client draws which of the task's questions it answers, and says so in clear: no
    record has a part in it. ``stand_in`` returns questions about d numbers.
    """

    what: str
    stand_in: Callable[[int, str], Partitions]
    senders: Senders = EVERYBODY
    name: str = "report"
    stage: str = "privatize"
    table: str = "answers"
    payload: type[Payload] = AnswerPayload
    mechanism: str = KRR.name
    detail: str = "the whole of it, on the one word; which question it is, is public"

    def terms(self, setting: Setting, encoding: Encoding) -> dict[str, Any]:
        """Return the mechanism; the questions are a stage's."""
        return {"mechanism": KRR.name}

    def task(self, stated: Task, read: Read) -> Task:
        """Return the stated task with the public questions."""
        made = Partitions.read(read("train", "questions"), stated.encoding.d)
        return _asking(stated, made)

    def rehearsal(self, stated: Task) -> Task:
        """Return the stated task with questions of the configured kind."""
        encoding = stated.encoding
        return _asking(stated, self.stand_in(encoding.d, encoding.rescale))

    def admit(self, task: Task) -> None:
        """Refuse other fields, another mechanism, and cells that are none."""
        check_fields(task, params=PARTS, binary=False)
        validate.one_of((KRR.name,), mechanism=task.mechanism)
        check_number(_asked(task).cells, len(task.classes))

    def worst_loss(self, task: Task) -> float:
        """Return the loss of the one word."""
        return mechanism(task).worst_log_ratio()

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return questions (n,), which no record chose, and noised answers (n,)."""
        asked, n = _asked(task), len(_checked(task, known))
        question = exact.below(asked.count, n, stream(entropy, "question"))
        said = truth(task, known, question)
        noise = stream(entropy, "answer")
        return {"question": question, "answer": mechanism(task).randomize(said, noise)}

    def possible(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each message whether it is an answer to a question."""
        there = messages["question"] < _asked(task).count
        return np.asarray(there & mechanism(task).possible(messages["answer"]))

    def log_ratio(
        self, task: Task, one: Known, other: Known, messages: Columns
    ) -> Array:
        """Return the privacy loss of the answer; the question is as likely for all."""
        question, answer = messages["question"], messages["answer"]
        pair = truth(task, one, question), truth(task, other, question)
        return mechanism(task).log_ratio(*pair, answer)

    def gather(self, task: Task, messages: Columns) -> Columns:
        """Return the table ``answers``."""
        return {
            name: messages[name].astype(np.int64) for name in ("question", "answer")
        }


def truth(task: Task, known: Known, question: Index) -> Index:
    """Return what records say to their questions (n,): cell K + class."""
    cell = _asked(task).place(known.z, question)
    k = len(task.classes)
    return cell * k + places(known.labels, k)


def mechanism(task: Task) -> KRR:
    """Return the mechanism that noises the word."""
    words = _asked(task).cells * len(task.classes)
    return KRR(epsilon=task.epsilon, n_classes=words)


def check_number(cells: int, n_classes: int) -> None:
    """Refuse (UserError) more words than a noised one can tell apart."""
    if cells * n_classes > MOST_ANSWERS:
        raise UserError(
            f"{cells} cells of {n_classes} classes are {cells * n_classes} words; one"
            f" noised word tells at most {MOST_ANSWERS} apart: ask for fewer cells."
        )


def _asked(task: Task) -> Partitions:
    return Partitions.read(task.params, task.encoding.d)


def _asking(stated: Task, made: Partitions) -> Task:
    params: Mapping[str, Any] = {k: v.tolist() for k, v in made.columns.items()}
    return replace(stated, mechanism=KRR.name, params=params)


def _checked(task: Task, known: Known) -> Array:
    """Return z of whole records; UserError: one is broken, and nothing is drawn."""
    said, z = places(known.labels, len(task.classes)), validate.finite(z=known.z)
    if z.shape != (said.size, task.encoding.d):
        raise UserError(f"{said.size} labels for numbers of shape {z.shape}.")
    return z
