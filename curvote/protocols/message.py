"""What leaves a client: a protocol declares its messages, all else follows from that.

The ledger, envelopes, intake and audit know messages only through this interface, so a
new protocol brings its own and changes none of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from curvote import validate
from curvote.chain.registry import SYSTEMS
from curvote.chain.sent import Sent
from curvote.chain.stage import Columns
from curvote.classes import signs
from curvote.entropy import Entropy
from curvote.errors import InternalError, UserError
from curvote.mechanisms.registry import MAY_CALL, MECHANISMS
from curvote.protocols.payloads import positive_zeros, same, shape
from curvote.protocols.roles import NARROW, Senders
from curvote.representation.encoding import Encoded, Encoding
from curvote.strict_json import said
from curvote.task import Asked, Task
from curvote.validate import shown

Array = NDArray[np.float64]
Setting = Callable[[str], Any]
Read = Callable[[str, str], Columns]


@dataclass(frozen=True, eq=False)
class Known:
    """What n clients know: coefficients and z (n, d), labels (n,): places of classes.

    ``judge`` (n,) is the candidate that each was asked about; None in a report round.
    Of a ``whole`` message the n records are one sender's.
    ``public`` is what everybody knows of each, such as the record's name.
    """

    coefficients: Array
    z: Array
    labels: NDArray[Any]
    judge: NDArray[np.integer[Any]] | None = None
    public: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def signs(self) -> Array:
        """Labels of two classes as -1/+1; anything else is a UserError."""
        return signs(self.labels)

    def of(self, part: slice | NDArray[np.int64]) -> Known:
        """Return what some of them know."""
        judge = None if self.judge is None else self.judge[part]
        own = self.coefficients[part], self.z[part], self.labels[part]
        public = {name: values[part] for name, values in self.public.items()}
        return Known(*own, judge, public)


class Message(ABC):
    """One kind of message: one row a client, released once within the task's budget.

    A ``whole`` one is about a table: all n records are those of one sender, who draws
    one row; replacing any one of them is what it hides. Else n is 1 for each client.

    ``party`` is what a sender is called. ``senders`` are who sends it, ``stage`` is
    where it is drawn, ``table`` the server's table that it becomes, ``payload`` its
    form in an envelope. A ``tied`` one belongs to a public record, whose name stands in
    the payload's ``record``; each record has one. ``bounded`` says that a
    z outside [-1, 1] stands for the nearest bound, ``shuffled`` that rows reach the
    table in random order and stay tied to nothing that tells whose they are. Where the
    table holds counts, ``counted`` names those of its columns that add up. ``who``
    sends ``what``, noised by ``mechanism``, and ``detail`` are words for a page.
    """

    name: str
    stage: str
    table: str
    senders: Senders
    payload: type[BaseModel]
    whole: bool = False
    tied: bool = False
    party: str = "client"
    bounded: bool = False
    shuffled: bool = True
    counted: tuple[str, ...] = ()
    who: str = "every client"
    what: str
    mechanism: str
    detail: str

    def words(self, config: Mapping[str, Any], d: int) -> Sequence[Sent]:
        """Return what leaves a client under a configuration, of d numbers, in words."""
        return [Sent(self.who, self.what, self.mechanism, self.detail)]

    @abstractmethod
    def terms(self, setting: Setting, encoding: Encoding) -> dict[str, Any]:
        """Return the fields of the first round's task that the configuration states.

        ``setting`` returns the value of a dotted key of pipelines.yaml.
        """

    def task(self, stated: Any, read: Read) -> Any:
        """Return the task of this round: what the configuration alone does not say.

        ``read`` returns what the server has so far, by stage and table.
        """
        return stated

    def invited(self, config: Mapping[str, Any]) -> int:
        """Return how many senders are invited to one round."""
        return self.senders.count(config["clients"])

    def sender(self, task: Any) -> str | None:
        """Return the name of the one sender that a task asks, if it has one."""
        return None

    def together(self, asked: Sequence[Any]) -> Any:
        """Return the one task to publish for rounds that ask several senders."""
        return asked[-1]

    def records(self, read: Read) -> Sequence[str]:
        """Return the names of the public records that a ``tied`` message asks about.

        ``read`` returns what the server has, by stage and table.
        """
        raise InternalError(f"a {self.name} belongs to no record")

    def rho(self, task: Any, n: int) -> float | None:
        """Return the zero-concentrated cost of a message about n, if it is known."""
        return None

    def least(self, config: Mapping[str, Any]) -> int:
        """Return the fewest messages with which a configured server can go on."""
        return 1

    def rehearsal(self, stated: Any) -> Any:
        """Return a task of this round with stand-ins for what the server would add."""
        return stated

    @abstractmethod
    def admit(self, task: Any) -> None:
        """Refuse (UserError) a task that is not one of this message, in every field.

        After that a client may draw: what its record holds makes no difference.
        """

    @abstractmethod
    def worst_loss(self, task: Any) -> float:
        """Return the complete message's largest privacy loss, from the integers."""

    def code(self, task: Any) -> tuple[str, ...]:
        """Return the code that the task chooses by a name, and what that may call."""
        names = (task.mechanism, *MAY_CALL.get(task.mechanism, ()))
        return tuple(MECHANISMS[name] for name in names)

    def numbers(self, task: Any) -> int:
        """Return how many noised numbers a message holds, beside classes and bits."""
        return 0

    @abstractmethod
    def draw(self, task: Any, known: Known, entropy: Entropy) -> Columns:
        """Return the noised messages, one row a client; UserError: nothing is drawn."""

    @abstractmethod
    def possible(self, task: Any, messages: Columns) -> NDArray[np.bool_]:
        """Say for each row whether an honest client can have sent it."""

    def refuse(self, task: Any, sent: dict[str, Any]) -> None:
        """Refuse (UserError) a message that no honest client can have sent."""
        if not self.possible(task, rows([sent]))[0]:
            raise UserError(
                f"no client can have sent this {self.name}: {task.mechanism} at epsilon"
                f" {task.epsilon:g} never gives {shape(sent)} for this task."
            )

    @abstractmethod
    def log_ratio(
        self, task: Any, one: Known, other: Known, messages: Columns
    ) -> Array:
        """Return ln P(message | one) - ln P(message | other), one number a row."""

    @abstractmethod
    def gather(self, task: Any, messages: Columns) -> Columns:
        """Return the server's table; what it holds must not depend on row order."""


def messages(protocol: str) -> Mapping[str, Message]:
    """Return the messages of a protocol, in the order of its rounds."""
    package = SYSTEMS[validate.one_of(SYSTEMS, protocol=protocol)]
    module = f"{package}.messages"
    # Not the system's: a client's process holds no more than it needs.
    declared: Mapping[str, Message] = import_module(module).MESSAGES
    return declared


def message_of(task: Asked) -> Message:
    """Return the message that a task asks for."""
    known = messages(task.protocol)
    return known[validate.one_of(known, asks=task.asks)]


def knowledge(
    task: Task,
    curves: Array,
    labels: NDArray[Any],
    judge: NDArray[np.integer[Any]] | None = None,
) -> Known:
    """Return what clients with ``curves`` (n, T) and ``labels`` (n,) can tell.

    A curve of another length, NaN, or a candidate that is not up for a vote is a
    UserError.
    """
    encoded: Encoded = task.encoding.encode(curves)
    if task.candidates is None:
        return Known(encoded.coefficients, encoded.z, labels)
    count = len(task.candidates.coef)
    if judge is None or not ((judge >= 0) & (judge < count)).all():
        raise UserError(f"each vote must name a candidate, 0 to {count - 1}.")
    return Known(encoded.coefficients, encoded.z, labels, judge)


def dealt(task: Task, voters: int, rng: np.random.Generator) -> NDArray[Any] | None:
    """Return the candidate that each voter judges: random parts, sizes differ by 1.

    None where the task has no candidates, and nothing is drawn. For very many voters
    the numbers are of as few bits as they need.
    """
    if task.candidates is None:
        return None
    count = len(task.candidates.coef)
    narrow = np.min_scalar_type(-count) if voters >= NARROW else np.int64
    judge = np.resize(np.arange(count, dtype=narrow), voters)
    rng.shuffle(judge)
    return judge


def rows(payloads: list[dict[str, Any]]) -> Columns:
    """Return payloads as columns, one row each; all have the same keys."""
    return {name: np.array([p[name] for p in payloads]) for name in payloads[0]}


def row(messages: Columns, index: int) -> dict[str, Any]:
    """Return one message as plain JSON values."""
    return {name: values[[index]].tolist()[0] for name, values in messages.items()}


def check(
    task: Asked, about: int | str | None, payload: Mapping[str, Any]
) -> dict[str, Any]:
    """Refuse what no honest client sends who is invited to tell of ``about``.

    That is the candidate to judge, the public record that a message belongs to, or None
    in a report round. Return the message in its one form: 2.0 where 2 or 2e0 was sent.
    UserError: the payload has not the message's form, holds values that the mechanism
    never gives, or is about another candidate or record.
    """
    message = message_of(task)
    sent = formed(message, about, payload)
    message.refuse(task, sent)
    return positive_zeros(sent)


def formed(
    message: Message, about: int | str | None, payload: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a payload in the message's form, about ``about``; else UserError."""
    try:
        sent = message.payload.model_validate(payload).model_dump()
    except ValidationError as error:
        raise UserError(f"not a {message.name}: {said(error)}.") from None
    if not same(sent, dict(payload)):  # True for 1
        raise UserError(f"not a {message.name}: a value is of another kind.")
    _refuse_other(message, about, sent)
    return sent


def _refuse_other(
    message: Message, about: int | str | None, sent: dict[str, Any]
) -> None:
    """Refuse a message about something else than what its sender was asked about."""
    if message.tied and sent["record"] != about:
        raise UserError(
            f"a {message.name} of record {shown(sent['record'])}; the invitation is for"
            f" record {shown(about)}."
        )
    if isinstance(about, int) and sent["learner"] != about:
        raise UserError(
            f"a vote about candidate {sent['learner']}; the invitation asks about"
            f" candidate {about}."
        )
