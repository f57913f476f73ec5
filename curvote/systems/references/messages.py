"""Message of `majority`, a noised label, and its randomized response."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from curvote.base import validate
from curvote.base.classes import class_indices
from curvote.base.entropy import Entropy, stream
from curvote.base.errors import UserError
from curvote.chain.stage import Columns
from curvote.chain.system import MessageDescription
from curvote.curves.encoding import Encoding
from curvote.mechanisms.randomized_response import KRR, BinaryRR
from curvote.messages import message
from curvote.messages.roles import EVERYBODY
from curvote.systems.common.judgement import ReleaseJudgement
from curvote.wire.task import Task


@dataclass(frozen=True, eq=False)
class Response:
    """Randomized response on a label: its mechanism and codes by class.

    ``words`` (K,) are numbers, rising; ``make_mechanism`` takes ``epsilon``.
    """

    name: str
    words: NDArray[np.int64]
    make_mechanism: Callable[..., BinaryRR | KRR]

    def encode(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        """Return the codes (n,) of labels, which are places of classes."""
        return self.words[class_indices(labels, self.words.size)]

    def counts(self, noised: NDArray[Any]) -> NDArray[np.int64]:
        """Return how many noised labels (n,) name each class, (K,)."""
        named = np.searchsorted(self.words, noised)
        return np.bincount(named, minlength=self.words.size)


def response_for(n_classes: int) -> Response:
    """Return the randomized response for so many classes."""
    if n_classes == 2:
        return Response(BinaryRR.name, np.array([-1, 1]), BinaryRR)
    make_krr = partial(KRR, n_classes=n_classes)
    return Response(KRR.name, np.arange(n_classes), make_krr)


class LabelPayload(message.Payload):
    """Payload of a noised label, one of the task's classes."""

    label: Annotated[int, Field(ge=-1, lt=message.MAX_CLASSES)]


class Label(message.Message):
    """A client's label by randomized response with the whole budget."""

    name, stage, table = "report", "privatize", "labels"
    senders, payload = EVERYBODY, LabelPayload
    summed = True
    what = "one noised label"
    detail = "with all of epsilon; none of the numbers is sent"

    def describe(
        self, config: Mapping[str, Any], d: int
    ) -> Sequence[MessageDescription]:
        """Return the description of a label, noised as its classes need."""
        from curvote.data import lookup  # no client needs the sources

        classes = lookup.classes(config["source"])
        name = response_for(len(classes) if classes else 2).name
        return [MessageDescription(self.who, self.what, name, self.detail)]

    def terms(
        self, setting: message.SettingReader, encoding: Encoding
    ) -> dict[str, Any]:
        """Return nothing: the mechanism is left to the classes."""
        return {}

    def task(self, base_task: Task, read: message.TableReader) -> Task:
        """Return the base task with the mechanism of its classes."""
        return replace(base_task, mechanism=_task_response(base_task).name)

    def nominal_task(self, base_task: Task) -> Task:
        """Return the base task with the mechanism of its classes."""
        return replace(base_task, mechanism=_task_response(base_task).name, params={})

    def check_task(self, task: Task) -> None:
        """Refuse another mechanism, parameters, candidates and too many classes."""
        message.check_fields(task, binary=False)
        message.check_class_count(len(task.classes))
        validate.one_of((_task_response(task).name,), mechanism=task.mechanism)

    def mechanisms(self, task: Task, n: int | None = None) -> Sequence[BinaryRR | KRR]:
        """Return that of the one label."""
        return (_label_mechanism(task),)

    def draw(self, task: Task, data: message.ClientData, entropy: Entropy) -> Columns:
        """Return the noised labels (n,)."""
        noise, codes = stream(entropy, "majority"), _label_codes(task, data)
        noised = _label_mechanism(task).randomize(codes, noise)
        return {"label": noised.astype(np.int8)}

    def possible_mask(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each message whether it is a label."""
        return np.isin(messages["label"], _task_response(task).words)

    def log_ratio(
        self,
        task: Task,
        first: message.ClientData,
        second: message.ClientData,
        messages: Columns,
    ) -> message.Array:
        """Return the privacy loss of the label; z has no part in the message."""
        pair = _label_codes(task, first), _label_codes(task, second)
        return _label_mechanism(task).log_ratio(*pair, messages["label"])

    def collect(self, task: Task, messages: Columns) -> Columns:
        """Return the table ``labels``."""
        return {"label": messages["label"].astype(np.int8)}


class ComparisonLabel(Label):
    """Label drawn in a study beside another system's messages."""

    detail = "for majority, the constant classifier that a method must beat"


def _task_response(task: Task) -> Response:
    return response_for(len(task.classes))


def _label_mechanism(task: Task) -> BinaryRR | KRR:
    return _task_response(task).make_mechanism(epsilon=task.epsilon)


def _label_codes(task: Task, data: message.ClientData) -> NDArray[np.int64]:
    """Return the codes of labels (n,); refuse broken records.

    Else whether a client answers at all could say that its other numbers are damaged.
    """
    codes, records = _task_response(task).encode(data.labels), validate.finite(z=data.z)
    if codes.shape != (len(records),):
        raise UserError(f"{codes.size} labels for {len(records)} records.")
    return codes


def elected_lines(task: Task, read: message.TableReader) -> Columns:
    """Return lines that say the elected class of every record."""
    k, place = len(task.classes), int(read("aggregate", "elected")["place"][0])
    score = np.array([2.0 * place - 1]) if k == 2 else np.eye(k)[place]
    return {"coef": np.zeros((len(score), task.encoding.d)), "intercept": score}


# No client sends anything to the others.
MESSAGES_BY_SYSTEM: Final[dict[str, dict[str, message.Message]]] = {
    "majority": {"report": Label(), "judgement": ReleaseJudgement(elected_lines)},
    "clean": {},
    "functional": {},
}
