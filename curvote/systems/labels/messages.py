"""Messages and tasks of private labels: one noised code of each, of a public record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from curvote.base import validate
from curvote.base.classes import Classes
from curvote.base.entropy import Entropy, is_study, stream
from curvote.base.privacy import Budget
from curvote.chain.axis import PipelineSettings
from curvote.chain.stage import Columns, Inputs, Metadata, Params
from curvote.chain.system import MessageDescription
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.factory import make
from curvote.messages import message
from curvote.messages.message import ClientData
from curvote.messages.roles import TRAINING, Senders
from curvote.systems.labels import words as private
from curvote.systems.labels.codes import encoders
from curvote.wire.task import AnyTask, Epsilon, MechanismParams, TaskForm, Word

# What a mechanism is told by the rest of a task, or knows of each record by itself.
RESERVED_PARAMS = ("epsilon", "n_classes", "prior")


class LabelForm(TaskForm):
    """JSON form of a task about labels as `Task.to_json` writes it."""

    format: Literal[3]
    epsilon: Epsilon
    encoder: Word
    params: MechanismParams
    words: dict[Word, list[Word]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_fields(self) -> LabelForm:
        self.refuse_lookalikes()
        if any(len(column) < 2 for column in self.words.values()):
            raise ValueError("words must be two or more of each column")
        private.label_classes(self.classes, self.words)
        if self.encoder not in encoders.ENCODERS:
            names = ", ".join(encoders.ENCODERS)
            raise ValueError(f"encoder must be one of {names}, by its full name")
        twice = [name for name in RESERVED_PARAMS if name in self.params]
        if twice:
            raise ValueError(f"params must not hold {twice[0]}")
        return self


PROTOCOL: Final = "labels"
ASKS: Final = "code"


@dataclass(frozen=True, eq=False)
class Task(AnyTask):
    """One noised code of one label for each record; every field is public.

    ``encoder`` is the mechanism (`auto` and short names are made concrete), ``params``
    its parameters beside epsilon and the number of classes. ``number`` counts the times
    that the same was asked. With ``words`` of private columns a class is a label and a
    word of each (`curvote.systems.labels.words`), and one code hides them all.
    """

    FORMAT = 3
    REFUSAL = "a label is asked in"
    form = LabelForm

    classes: Classes
    epsilon: float
    encoder: str = "auto"
    params: Mapping[str, Any] = field(default_factory=dict)
    number: int = 1
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    asks: str = ASKS
    protocol: str = PROTOCOL

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "classes", Classes(str(name) for name in self.classes))
        put(self, "epsilon", validate.positive(epsilon=self.epsilon))
        name = encoders.mechanism_name(self.encoder, len(self.classes), self.epsilon)
        put(self, "encoder", name)
        validate.at_least(1, number=self.number)

    @property
    def mechanism(self) -> str:
        """Return the name of the mechanism that noises the label."""
        return self.encoder

    def noise(self, **record_params: Any) -> LabelMechanism:
        """Return the mechanism; ``record_params`` are those that differ by record."""
        params = {"n_classes": len(self.classes), **self.params, **record_params}
        mechanism = make(self.encoder, epsilon=self.epsilon, **params)
        return cast("LabelMechanism", mechanism)

    def cost(self, n: int = 1) -> Budget:
        """Return what the code of each of ``n`` labels costs its owner."""
        validate.at_least(1, n=n)
        return Budget(self.epsilon)

    def payload(self) -> dict[str, Any]:
        """Return the fields that a task about labels adds."""
        return {
            "epsilon": self.epsilon,
            "encoder": self.encoder,
            "params": dict(self.params),
            **({"words": dict(self.words)} if self.words else {}),
        }


Array = NDArray[np.float64]

TASK = Task
RECORD, CODE, PRIOR = "record", "code", "prior"


class CodePayload(message.Payload):
    """A code as JSON: of which public record, and the code's number or numbers."""

    record: Word
    code: int | list[int]


class CodeMessage(message.Message):
    """One noised code of a label, by the encoder that the task names."""

    name, stage, table = ASKS, "privatize", "codes"
    senders: Senders = TRAINING
    payload: type[message.Payload] = CodePayload
    per_record, shuffled = True, False
    who, what = "every client who trains", "one noised code of its label"
    mechanism, detail = encoders.AUTO, "with all of epsilon; features are public"

    def describe(self, config: Mapping[str, Any], d: int) -> list[MessageDescription]:
        """Return the description of what leaves a client, with its encoder."""
        encoder = self.mechanism
        if encoder == encoders.AUTO:
            encoder = str(config["labels"]["encoder"])
        what, detail = self.what, self.detail
        if config["public"]["columns"] or config["source"].get("private"):
            what += " and private columns"
            detail = "with all of epsilon, for all of them; other columns are public"
        return [MessageDescription(self.who, what, encoder, detail)]

    def records(self, read: message.TableReader) -> list[str]:
        """Return the names of the public records that are asked about: all of them."""
        return [*record_names(read("ingest", "clients"))]

    def check_task(self, task: Any) -> None:
        """Refuse encoders that are none, and parameters that are not theirs."""
        validate.one_of(encoders.ENCODERS, encoder=task.encoder)
        self.noise(task)

    def noise(self, task: Any, data: ClientData | None = None) -> LabelMechanism:
        """Return the mechanism that hides a label."""
        mechanism: LabelMechanism = task.noise(**self.record_params(task, data))
        return mechanism

    def record_params(self, task: Any, data: ClientData | None) -> dict[str, Any]:
        """Return the parameters of the mechanism that differ by record."""
        return {}

    def mechanisms(self, task: Any, n: int | None = None) -> Sequence[LabelMechanism]:
        """Return that of the one code."""
        return (self.noise(task),)

    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        """Return the codes of labels (n,), places of classes."""
        mechanism, noise = self.noise(task, data), stream(entropy, "labels")
        draw = mechanism.simulate if is_study(entropy) else mechanism.randomize
        return {CODE: draw(data.labels, noise)}

    def possible_mask(self, task: Any, messages: Columns) -> NDArray[np.bool_]:
        """Return for each message whether some label can give its code."""
        code, mechanism = np.asarray(messages[CODE]), self.noise(task)
        if code.dtype.kind not in "iu":
            return np.zeros(len(code), dtype=bool)
        native = to_outputs(mechanism, code)
        same = (native == code).reshape(len(code), -1).all(axis=1)
        return np.asarray(same & mechanism.possible_mask(native))

    def log_ratio(
        self, task: Any, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return the loss of each code; a record's features have no part in it."""
        mechanism = self.noise(task, first)
        code = to_outputs(mechanism, messages[CODE])
        return mechanism.log_ratio(first.labels, second.labels, code)

    def collect(self, task: Any, messages: Columns) -> Columns:
        """Return the table ``codes``, its codes as the mechanism gave them."""
        code = to_outputs(self.noise(task), np.asarray(messages[CODE]))
        names = np.asarray(messages[RECORD], dtype=object)
        order = np.argsort(names.astype(str), kind="stable")
        return {RECORD: names[order], CODE: code[order]}


class LikelyCodeMessage(CodeMessage):
    """Second round: one of the labels that the first round holds likely.

    What is likely is public, and each record's own.
    """

    name, stage = "likely", "again"
    senders = Senders(("train",), 0.5, 1.0)
    who = "the other half of them"
    what, mechanism = "its label among the likely ones, noised", "rr_with_prior"

    def record_params(self, task: Any, data: ClientData | None) -> dict[str, Any]:
        """Return the priors of the records; without any all labels are as likely."""
        alike = np.ones(len(task.classes))
        return {PRIOR: alike if data is None else data.public.get(PRIOR, alike)}


class FirstCodeMessage(CodeMessage):
    """The first of two rounds: half of the labels, all classes being as likely."""

    senders = Senders(("train",), 0.0, 0.5)
    who, mechanism = "half of the clients who train", "k_rr"


def record_names(clients: Columns) -> NDArray[Any]:
    """Return the public names of records: as the source has them, or ids as text."""
    names = clients.get(RECORD)
    if names is not None and len(names) and names[0] is not None:
        return names
    return np.array([*map(str, clients["client_id"])], dtype=object)


def to_outputs(mechanism: LabelMechanism, code: NDArray[Any]) -> NDArray[Any]:
    """Return codes in the mechanism's own type; JSON knows one kind of number."""
    return code.astype(mechanism.dtype)


TWO_ROUNDS: Final = "labels_two"
LIKELY: Final = LikelyCodeMessage.name
SINGLE_ROUND = CodeMessage()
FIRST_ROUND, SECOND_ROUND = FirstCodeMessage(), LikelyCodeMessage()
# Without privacy nothing leaves a client; the study of numbers draws its own noise.
MESSAGES_BY_SYSTEM: Final[dict[str, dict[str, CodeMessage]]] = {
    PROTOCOL: {ASKS: SINGLE_ROUND},
    TWO_ROUNDS: {ASKS: FIRST_ROUND, LIKELY: SECOND_ROUND},
    "labels_clean": {},
    "labels_regression": {},
}


def tasks_by_level(
    settings: PipelineSettings, read: Callable[[str], Metadata]
) -> Iterator[Task]:
    """Yield the task of each level of epsilon."""
    source, public = read("ingest"), settings.public
    words = private.words_of(
        private.private_columns(source, public.columns, public.bins)
    )
    for epsilon in settings.epsilon:
        encoder = settings.labels.encoder
        yield single_round_task(source["classes"], epsilon, encoder, words=words)


def tasks_of_two_rounds(
    settings: PipelineSettings, read: Callable[[str], Metadata]
) -> Iterator[Task]:
    """Yield the tasks of both rounds at each level."""
    classes = read("ingest")["classes"]
    for epsilon in settings.epsilon:
        yield round_task(FIRST_ROUND, classes, epsilon)
        yield round_task(SECOND_ROUND, classes, epsilon)


def task_of(inputs: Inputs, params: Params) -> Task:
    """Return the task of the round that a stage draws: all of it is public."""
    classes = inputs["ingest"].metadata["classes"]
    epsilon, number = params["epsilon"], params.get("number", 1)
    words = private.words_of(source_private(inputs, params))
    return single_round_task(classes, epsilon, params["labels.encoder"], number, words)


def source_private(inputs: Inputs, params: Params) -> list[dict[str, Any]]:
    """Return the private columns of a stage's source."""
    settings = params["public.columns"], params["public.bins"]
    return private.private_columns(inputs["ingest"].metadata, *settings)


def single_round_task(
    classes: Sequence[str],
    epsilon: float,
    encoder: str,
    number: int = 1,
    words: private.Words | None = None,
) -> Task:
    """Return the task of a single round, with the parameters chosen for it."""
    words = words or {}
    joint = Classes(private.joint_classes(classes, words))
    task = Task(joint, epsilon, encoder, number=number, words=words)
    return replace(task, params=encoders.explicit_params(task.noise()))


def round_task(kind: CodeMessage, classes: Classes, epsilon: float) -> Task:
    """Return the task of that of two rounds which asks for one kind of message."""
    return Task(classes, epsilon, kind.mechanism, asks=kind.name, protocol=TWO_ROUNDS)
