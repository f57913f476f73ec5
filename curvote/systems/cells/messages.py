"""Messages of `counts`, `stump` and `tree`: a noised cell and class in one word."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from curvote.base import classes, errors, validate
from curvote.base.entropy import Entropy, stream
from curvote.chain.settings import Strict, WholeNumber
from curvote.chain.stage import Columns
from curvote.curves import partition
from curvote.mechanisms import exact
from curvote.mechanisms.randomized_response import KRR
from curvote.messages import message
from curvote.messages.roles import EVERYBODY, Senders
from curvote.systems.common.judgement import ReleaseJudgement, aggregated_rule
from curvote.systems.common.settings import Shared
from curvote.wire.task import Task

Index = NDArray[np.int64]
# Of cells and classes together; more would leave no answer above the noise.
MAX_ANSWERS: Final = 1 << 12


class AnswerPayload(message.Payload):
    """Payload of an answer: its question, and the noised cell and class."""

    question: Annotated[int, Field(ge=0)]
    answer: Annotated[int, Field(ge=0)]


@dataclass(frozen=True, kw_only=True)
class Answer(message.Message):
    """A client's cell of one public partition and its class, by k-RR in one word.

    The client draws which of the task's questions it answers, and says so in clear: no
    record has a part in it. ``nominal_partitions`` returns questions about d numbers.
    """

    what: str
    nominal_partitions: Callable[[int, str], partition.Partitions]
    senders: Senders = EVERYBODY
    name: str = "report"
    stage: str = "privatize"
    table: str = "answers"
    payload: type[message.Payload] = AnswerPayload
    mechanism: str = KRR.name
    summed: bool = True
    detail: str = "all of epsilon on one word; which question it answers is public"

    def task(self, base_task: Task, read: message.TableReader) -> Task:
        """Return the base task with the public questions."""
        questions, d = read("train", "questions"), base_task.encoding.d
        return _with_partitions(
            base_task, partition.Partitions.from_columns(questions, d)
        )

    def nominal_task(self, base_task: Task) -> Task:
        """Return the base task with questions of the configured kind."""
        d, rescale = base_task.encoding.d, base_task.encoding.rescale
        return _with_partitions(base_task, self.nominal_partitions(d, rescale))

    def check_task(self, task: Task) -> None:
        """Refuse other fields, another mechanism, and invalid cells."""
        message.check_fields(task, params=partition.PARTS, binary=False)
        validate.one_of((KRR.name,), mechanism=task.mechanism)
        check_answer_count(_task_partitions(task).cells, len(task.classes))

    def mechanisms(self, task: Task, n: int | None = None) -> Sequence[KRR]:
        """Return that of the one word."""
        return (answer_mechanism(task),)

    def draw(self, task: Task, data: message.ClientData, entropy: Entropy) -> Columns:
        """Return questions (n,), which no record chose, and noised answers (n,)."""
        partitions = _task_partitions(task)
        # Broken records are refused before any draw.
        labels = classes.class_indices(data.labels, len(task.classes))
        z, n = validate.finite(z=data.z), labels.size
        if z.shape != (n, task.encoding.d):
            raise errors.UserError(f"{n} labels for numbers of shape {z.shape}.")
        question = exact.uniform_below(partitions.count, n, stream(entropy, "question"))
        truths = true_answers(task, data, question)
        noise = stream(entropy, "answer")
        answer = answer_mechanism(task).randomize(truths, noise)
        return {"question": question, "answer": answer}

    def possible_mask(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each message whether it is an answer to a question."""
        is_question = messages["question"] < _task_partitions(task).count
        is_answer = answer_mechanism(task).possible_mask(messages["answer"])
        return np.asarray(is_question & is_answer)

    def log_ratio(
        self,
        task: Task,
        first: message.ClientData,
        second: message.ClientData,
        messages: Columns,
    ) -> partition.Array:
        """Return the privacy loss of the answer; the question is as likely for all."""
        question, answer = messages["question"], messages["answer"]
        pair = true_answers(task, first, question), true_answers(task, second, question)
        return answer_mechanism(task).log_ratio(*pair, answer)

    def collect(self, task: Task, messages: Columns) -> Columns:
        """Return the table ``answers``."""
        return {n: messages[n].astype(np.int64) for n in ("question", "answer")}


def true_answers(task: Task, data: message.ClientData, question: Index) -> Index:
    """Return the true answers (n,) of records: cell K + class."""
    cell = _task_partitions(task).place(data.z, question)
    k = len(task.classes)
    return cell * k + classes.class_indices(data.labels, k)


def answer_mechanism(task: Task) -> KRR:
    """Return the mechanism that noises an answer."""
    words = _task_partitions(task).cells * len(task.classes)
    return KRR(epsilon=task.epsilon, n_classes=words)


def check_answer_count(cells: int, n_classes: int) -> None:
    """Refuse more answers than a noised one can tell apart."""
    if cells * n_classes > MAX_ANSWERS:
        raise errors.UserError(
            f"{cells} cells of {n_classes} classes are {cells * n_classes} words; one"
            f" noised word tells at most {MAX_ANSWERS} apart: ask for fewer cells."
        )


def _task_partitions(task: Task) -> partition.Partitions:
    return partition.Partitions.from_columns(task.params, task.encoding.d)


def _with_partitions(base_task: Task, partitions: partition.Partitions) -> Task:
    params: Mapping[str, Any] = {k: v.tolist() for k, v in partitions.columns.items()}
    return replace(base_task, mechanism=KRR.name, params=params)


class Counts(Strict):
    """Number of bins, equally likely by the assumed law."""

    bins: Annotated[int, Field(ge=2, strict=True)] = 3


class CountsSettings(Shared):
    """Settings of noised counts."""

    counts: Counts = Counts()


COUNTS_ANSWER: Final = Answer(
    what="one noised word: in which bin one of its numbers lies, and its class",
    nominal_partitions=partial(partition.bin_partitions, count=Counts().bins),
)


class Stump(Strict):
    """Number of thresholds of each number that are tried."""

    thresholds: WholeNumber = 1


class StumpSettings(Shared):
    """Settings of a stump."""

    stump: Stump = Stump()


STUMP_ANSWER: Final = Answer(
    what="one noised word: on which side of one threshold it lies, and its class",
    nominal_partitions=partial(
        partition.half_partitions, thresholds=Stump().thresholds
    ),
)


class Tree(Strict):
    """Number of cells of the public grid."""

    cells: Annotated[int, Field(ge=2, strict=True)] = 8


class TreeSettings(Shared):
    """Settings of a tree."""

    tree: Tree = Tree()


def _nominal_grid(d: int, rescale: str) -> partition.Partitions:
    return partition.random_grid(
        d, rescale, cells=Tree().cells, rng=np.random.default_rng(0)
    )


TREE_ANSWER: Final = Answer(
    what="one noised word: in which cell of a public grid it lies, and its class",
    nominal_partitions=_nominal_grid,
)


_JUDGEMENT: Final = {
    "judgement": ReleaseJudgement(partial(aggregated_rule, "scorecard"), cells=True)
}
MESSAGES_BY_SYSTEM: Final[dict[str, dict[str, message.Message]]] = {
    "counts": {"report": COUNTS_ANSWER, **_JUDGEMENT},
    "stump": {"report": STUMP_ANSWER, **_JUDGEMENT},
    "tree": {"report": TREE_ANSWER, **_JUDGEMENT},
}
