"""Messages: what each kind is, and its payload as JSON, in one form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from curvote.base import validate
from curvote.base.classes import class_signs
from curvote.base.entropy import Entropy
from curvote.base.errors import InternalError, UserError
from curvote.base.validate import format_value
from curvote.chain.registry import SYSTEMS
from curvote.chain.stage import Columns
from curvote.chain.system import MessageDescription
from curvote.curves.encoding import Encoded, Encoding
from curvote.learning.sums import SumForm
from curvote.mechanisms.registry import MECHANISMS
from curvote.messages.roles import JUDGES, NARROW_COUNT, Senders
from curvote.wire.strict_json import StrictForm, read_form
from curvote.wire.task import AnyTask, Task


class Payload(StrictForm):
    """A message as JSON: nothing else, and no value of another kind."""


def same_json(normalized: Any, original: Any) -> bool:
    """Say whether two JSON values are equal; 2 and 2.0 count as equal."""
    if isinstance(normalized, dict):
        return all(same_json(v, original[name]) for name, v in normalized.items())
    if isinstance(normalized, list):
        if {*map(type, normalized), *map(type, original)} == {float}:
            return bool(normalized == original)
        return all(map(same_json, normalized, original))
    kinds = (int, float) if type(normalized) is float else (type(normalized),)
    return type(original) in kinds and bool(normalized == original)


def positive_zeros(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message with 0.0 in place of -0.0.

    Whole numbers stay whole.
    """
    return {
        name: [number + 0 for number in value] if isinstance(value, list) else value
        for name, value in message.items()
    }


def describe_payload(payload: Mapping[str, Any]) -> str:
    """Describe a payload without its noised numbers."""
    return ", ".join(
        f"{len(value)} such numbers in {name}"
        if isinstance(value, list)
        else f"{name} {value}"
        for name, value in payload.items()
    )


Array = NDArray[np.float64]
SettingReader = Callable[[str], Any]
TableReader = Callable[[str, str], Columns]


@dataclass(frozen=True, eq=False)
class ClientData:
    """Arrays that n clients hold: coefficients and z (n, d), labels (n,).

    ``candidate`` (n,) is the candidate that each was asked about; None in a report
    round. Of a ``whole`` message the n records are one sender's. ``public`` is what
    everybody knows of each, such as the record's name.
    """

    coefficients: Array
    z: Array
    labels: NDArray[Any]
    candidate: NDArray[np.integer[Any]] | None = None
    public: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def signs(self) -> Array:
        """Labels of two classes as -1/+1; anything else is a UserError."""
        return class_signs(self.labels)

    def subset(self, part: slice | NDArray[np.int64]) -> ClientData:
        """Return the data of some of the clients."""
        candidate = None if self.candidate is None else self.candidate[part]
        arrays = self.coefficients[part], self.z[part], self.labels[part]
        public = {name: values[part] for name, values in self.public.items()}
        return ClientData(*arrays, candidate, public)


@dataclass(frozen=True)
class Outcome:
    """What models said of a record, and what is true, as their owner writes it.

    ``answered`` holds one text for each model; ``probability`` is what the model stated
    of its answer, and ``group`` the private group, where they are asked for.
    """

    answered: tuple[str, ...]
    truth: str
    group: str | None = None
    probability: float | None = None


@dataclass(frozen=True)
class Windows:
    """Windows of time in which a message is asked for anew, ``count`` of them.

    Each is ``length`` seconds long, and its round takes answers for ``late`` seconds
    more. All are one release that goes on: every answer counts in its window.
    """

    length: float
    late: float
    count: int


class ShuffledLaw(Protocol):
    """What of a message's law says how well it hides among n of its kind."""

    def epsilon(self, n: int, delta: float, most: float) -> float:
        """Return an epsilon that holds with ``delta``, at most ``most``."""


class Message(ABC):
    """Kind of message: a row a client, released once within the budget.

    A ``per_table`` one is about a table: all n records are those of one sender, who
    draws one row; replacing any one of them is what it hides. Else n is 1 for each
    client.

    ``party`` is what a sender is called. ``senders`` are who sends it, ``stage`` is
    where it is drawn, ``table`` the server's table that it becomes, ``payload`` its
    form in an envelope. A ``per_record`` one belongs to a public record, whose name
    stands in the payload's ``record``; each record has one. ``bounded`` says that a z
    outside [-1, 1] stands for the nearest bound, ``shuffled`` that rows reach the table
    in random order and stay tied to nothing that tells whose they are. Where the table
    holds counts, ``count_columns`` names those of its columns that add up. Of a
    ``summed`` one the server needs no more than how often each came. ``who``
    sends ``what``, noised by ``mechanism``, and ``detail`` are words for a page. The
    number that an invitation is about stands in the payload's ``subject_field``. One
    that is ``about_model`` is sent of what a model said and what is true, as a word.
    ``schedule_settings`` say how often it is asked for, whoever reads them besides.
    """

    name: str
    stage: str
    table: str
    senders: Senders
    payload: type[BaseModel]
    per_table: bool = False
    per_record: bool = False
    party: str = "client"
    bounded: bool = False
    shuffled: bool = True
    count_columns: tuple[str, ...] = ()
    summed: bool = False
    about_model: bool = False
    schedule_settings: tuple[str, ...] = ()
    subject_field: str = "learner"
    who: str = "every client"
    what: str
    mechanism: str
    detail: str

    def describe(
        self, config: Mapping[str, Any], d: int
    ) -> Sequence[MessageDescription]:
        """Return descriptions of what leaves a client, of d numbers."""
        return [MessageDescription(self.who, self.what, self.mechanism, self.detail)]

    def terms(self, setting: SettingReader, encoding: Encoding) -> dict[str, Any]:
        """Return the fields of the first round's task that settings state.

        ``setting`` returns the value of a dotted key of pipelines.yaml. Where nothing
        is left to settings it is the mechanism alone.
        """
        return {"mechanism": self.mechanism}

    def task(self, base_task: Any, read: TableReader) -> Any:
        """Return the task of this round, with what the server added.

        ``read`` returns what the server has so far, by stage and table.
        """
        return base_task

    def invited_count(self, config: Mapping[str, Any]) -> int:
        """Return how many senders are invited to one round."""
        return self.senders.count(config["clients"])

    def invited_settings(self, count: int) -> dict[str, dict[str, Any]]:
        """Return the settings that invite so many, where `clients` does not."""
        return {}

    def made_up_words(self, task: Any, rng: np.random.Generator) -> dict[str, str]:
        """Return options of `curvote client answer` for somebody who does not exist."""
        raise InternalError(f"a {self.name} is about no model")

    def sum_form(self, task: Any) -> SumForm | None:
        """Return what an intake sums of messages to a task; None: it needs each row."""
        return SumForm() if self.summed else None

    def windows(self, config: Mapping[str, Any]) -> Windows | None:
        """Return the windows in which it is asked for; None: it is, once."""
        return None

    def opened(self, task: Any, config: Mapping[str, Any]) -> Any:
        """Return the task of a round that opens now."""
        return task

    def shuffled_law(self, task: Any) -> ShuffledLaw | None:
        """Return the law of a message as one among many; None: its cost says all."""
        return None

    def payload_of(self, task: Any) -> type[BaseModel]:
        """Return the form of a message to this task as JSON."""
        return self.payload

    def describe_answer(self, task: Any, about: int | str | None) -> str | None:
        """Return words for an answer to this task; None: those of its fields."""
        return None

    def word(self, task: Any, outcome: Outcome) -> int:
        """Return the word before noise of a message that is about a model."""
        raise InternalError(f"a {self.name} is about no model")

    def read_outcomes(
        self, task: Any, table: Path
    ) -> tuple[dict[str, tuple[int | None, Outcome]], list[str]]:
        """Return what models said of the ids of a table, and notes for its holder.

        Of each id there are its public group, None where there are none, and outcome.
        """
        raise InternalError(f"a {self.name} is about no model")

    def model_answer(self, model: Path, record: Path) -> tuple[str, float]:
        """Return what a model in a file answers about a record, and how sure it is."""
        raise InternalError(f"a {self.name} is about no model")

    def stated_probability(self, task: Any, probability: float) -> float | None:
        """Return how sure the model was, None where it is not asked for."""
        return None

    def sender(self, task: Any) -> str | None:
        """Return the name of the one sender that a task asks, if it has one."""
        return None

    def merge_tasks(self, tasks: Sequence[Any]) -> Any:
        """Return the one task to publish for rounds that ask several senders."""
        return tasks[-1]

    def records(self, read: TableReader) -> Sequence[str]:
        """Return the names of public records that messages belong to.

        ``read`` returns what the server has, by stage and table.
        """
        raise InternalError(f"a {self.name} belongs to no record")

    def rho(self, task: Any, n: int) -> float | None:
        """Return the zero-concentrated cost of a message about n, if known."""
        return None

    def min_messages(self, config: Mapping[str, Any]) -> int:
        """Return the fewest messages with which a server can go on."""
        return 1

    def example_task(self, size: int, epsilon: float) -> Any:
        """Return a task that audits examine; None: that of an example record."""
        return None

    def nominal_task(self, base_task: Any) -> Any:
        """Return a task of this round with stand-ins for server values."""
        return base_task

    @abstractmethod
    def check_task(self, task: Any) -> None:
        """Refuse (UserError) a task that does not fit this message.

        After that a client may draw: what its record holds makes no difference.
        """

    def mechanisms(self, task: Any, n: int | None = None) -> Sequence[Any]:
        """Return the mechanisms whose outputs together are a message about ``n``.

        None is a number of records that is as good as any.
        """
        raise InternalError(f"a {self.name} names no mechanism")

    def max_privacy_loss(self, task: Any) -> float:
        """Return the complete message's largest privacy loss, from the integers."""
        return float(sum(m.worst_log_ratio() for m in self.mechanisms(task)))

    def code_modules(self, task: Any) -> tuple[str, ...]:
        """Return the modules that a task chooses by name to draw its message."""
        return tuple(MECHANISMS[name] for name in MECHANISMS.reach(task.mechanism))

    def count_numbers(self, task: Any) -> int:
        """Return the count of noised numbers, beside classes and bits."""
        return 0

    @abstractmethod
    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        """Return the noised messages, one row a client; UserError: nothing is drawn."""

    @abstractmethod
    def possible_mask(self, task: Any, messages: Columns) -> NDArray[np.bool_]:
        """Return for each row whether an honest client can have sent it."""

    def check_message(self, task: Any, message: dict[str, Any]) -> None:
        """Refuse (UserError) a message that no honest client can have sent."""
        if not self.possible_mask(task, payload_columns([message]))[0]:
            raise UserError(
                f"no client can have sent this {self.name}: {task.mechanism} at epsilon"
                f" {task.epsilon:g} never gives {describe_payload(message)} for this"
                " task."
            )

    @abstractmethod
    def log_ratio(
        self, task: Any, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return ln P(message | first) - ln P(message | second), for each row."""

    @abstractmethod
    def collect(self, task: Any, messages: Columns) -> Columns:
        """Return the server's table; what it holds must not depend on row order."""


def messages_of(protocol: str) -> Mapping[str, Message]:
    """Return the messages of a protocol, in the order of its rounds."""
    package = SYSTEMS[validate.one_of(SYSTEMS, protocol=protocol)]
    # Not the system's module: a client's process holds no more than it needs.
    module = import_module(f"{package}.messages")
    several = getattr(module, "MESSAGES_BY_SYSTEM", None)
    declared: Mapping[str, Message] = several[protocol] if several else module.MESSAGES
    return declared


def learning_messages(protocol: str) -> dict[str, Message]:
    """Return the messages that a protocol learns from: all but those of judges."""
    every = messages_of(protocol).items()
    return {name: kind for name, kind in every if kind.senders is not JUDGES}


def message_of(task: AnyTask) -> Message:
    """Return the message that a task asks for."""
    available = messages_of(task.protocol)
    return available[validate.one_of(available, asks=task.asks)]


def client_data(
    task: Task,
    curves: Array,
    labels: NDArray[Any],
    candidate: NDArray[np.integer[Any]] | None = None,
) -> ClientData:
    """Return the data of clients with ``curves`` (n, T) and ``labels`` (n,).

    A curve of another length, NaN, or a candidate that is not up for a vote is a
    UserError.
    """
    encoded: Encoded = task.encoding.encode(curves)
    if task.candidates is None:
        return ClientData(encoded.coefficients, encoded.z, labels)
    count = len(task.candidates.coef)
    if candidate is None or not ((candidate >= 0) & (candidate < count)).all():
        raise UserError(f"each vote must name a candidate, 0 to {count - 1}.")
    return ClientData(encoded.coefficients, encoded.z, labels, candidate)


def assign_candidates(
    task: Task, voters: int, rng: np.random.Generator
) -> NDArray[Any] | None:
    """Return the candidate of each voter: random parts of equal size.

    None where the task has no candidates, and nothing is drawn. For very many voters
    the numbers are of as few bits as they need.
    """
    if task.candidates is None:
        return None
    count = len(task.candidates.coef)
    dtype = np.min_scalar_type(-count) if voters >= NARROW_COUNT else np.int64
    candidates = np.resize(np.arange(count, dtype=dtype), voters)
    rng.shuffle(candidates)
    return candidates


def payload_columns(payloads: list[dict[str, Any]]) -> Columns:
    """Return payloads as columns, one row each; all have the same keys."""
    return {name: np.array([p[name] for p in payloads]) for name in payloads[0]}


def payload_at(messages: Columns, index: int) -> dict[str, Any]:
    """Return one message as plain JSON values."""
    return {name: values[[index]].tolist()[0] for name, values in messages.items()}


def parse_payload(
    task: AnyTask, about: int | str | None, payload: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a payload in the form that a task asks for; refuse any other."""
    message = message_of(task)
    form = read_form(message.payload_of(task), payload, f"not a {message.name}: ")
    normalized = form.model_dump()
    if not same_json(normalized, dict(payload)):  # True for 1
        raise UserError(f"not a {message.name}: a value is of another kind.")
    # It is about the subject that its sender was asked about.
    if message.per_record and normalized["record"] != about:
        raise UserError(
            f"a {message.name} of record {format_value(normalized['record'])}; the"
            f" invitation is for record {format_value(about)}."
        )
    field_name = message.subject_field
    if isinstance(about, int) and normalized[field_name] != about:
        called = "vote about candidate" if field_name == "learner" else message.name
        raise UserError(
            f"a {called} {normalized[field_name]}; the invitation asks about"
            f" {'candidate ' * (field_name == 'learner')}{about}."
        )
    return normalized


# A label is one byte, in tables and wherever they are read.
MAX_CLASSES: Final = 1 << 7


def check_fields(
    task: Task,
    *,
    params: Collection[str] | None = (),
    candidates: bool = False,
    binary: bool = True,
) -> None:
    """Refuse a task with other parameters than ``params``, or candidates.

    With None the parameters are the mechanism's own, which checks them. A ``binary``
    message tells two classes apart, so it is about no more.
    """
    if binary and len(task.classes) > 2:
        raise UserError(f"a {task.asks} of {task.protocol} is about two classes.")
    if params is not None and set(task.params) != set(params):
        raise UserError(
            f"params holds {format_value(sorted(task.params))}; a {task.asks} of"
            f" {task.protocol} takes {', '.join(sorted(params)) or 'none'}."
        )
    if (task.candidates is not None) != candidates:
        wanted = "no candidates" if candidates else "candidates"
        raise UserError(f"a {task.asks} of {task.protocol} with {wanted}.")


def check_class_count(n_classes: int) -> None:
    """Refuse more classes than a label can tell apart."""
    if n_classes > MAX_CLASSES:
        raise UserError(
            f"there are {n_classes} classes; a noised message tells at most"
            f" {MAX_CLASSES}."
        )


Submission = tuple[int | str | None, Mapping[str, Any]]


def parse_message(
    task: AnyTask, about: int | str | None, payload: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a payload in its one form; refuse what no honest client sends.

    ``about`` is the candidate to judge, the public record that the message belongs to,
    or None in a report round. UserError: the payload has not the message's form, holds
    values that the mechanism never gives, or is about another candidate or record.
    """
    (parsed,) = parse_messages(task, [(about, payload)])
    if isinstance(parsed, UserError):
        raise parsed
    return parsed


def parse_messages(
    task: AnyTask, submissions: Sequence[Submission]
) -> list[dict[str, Any] | UserError]:
    """Return for each (about, payload) the message in its one form, or the error.

    That is 2.0 where 2 or 2e0 was sent. Values are held against the mechanism in one
    call for all messages of one shape.
    """
    message = message_of(task)
    results: list[dict[str, Any] | UserError] = []
    by_shape: dict[Any, list[int]] = {}
    for place, (about, payload) in enumerate(submissions):
        try:
            parsed = parse_payload(task, about, payload)
        except UserError as error:
            results.append(error)
            continue
        results.append(parsed)
        # The lengths and types of values, which messages of an array share.
        shape = tuple(
            len(value) if isinstance(value, list) else type(value)
            for value in parsed.values()
        )
        by_shape.setdefault(shape, []).append(place)
    for places in by_shape.values():
        payloads = [
            result for p in places if not isinstance(result := results[p], UserError)
        ]
        possible = [False] * len(payloads)
        if not message.per_table:  # a sender's table is checked in its own words
            with suppress(UserError):
                columns = payload_columns(payloads)
                possible = message.possible_mask(task, columns).tolist()
        for place, payload, is_possible in zip(places, payloads, possible, strict=True):
            results[place] = positive_zeros(payload)
            if not is_possible:
                try:
                    message.check_message(task, payload)
                except UserError as error:
                    results[place] = error
    return results
