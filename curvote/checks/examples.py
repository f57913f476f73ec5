"""Examples of small mechanisms and tasks that the audit examines by default."""

import math
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from inspect import signature
from itertools import product
from typing import Any

import numpy as np

from curvote.base.classes import Classes
from curvote.base.errors import UserError
from curvote.chain.lookup import all_systems, task_class
from curvote.chain.system import System
from curvote.curves.basis import Projection, projection
from curvote.curves.encoding import Encoding
from curvote.mechanisms.base import Mechanism
from curvote.messages.message import messages_of
from curvote.wire.task import BESIDE, Task

MORE = 4  # classes, where more than two are tried
MANY = (5, 26)  # classes, of messages alone
CODED = (2, 100)  # classes of labels, beside MORE
WORDED = "labels.code@2x3"  # two labels, each with one of three private words


def mechanism_params(
    cls: type[Mechanism], epsilon: float, n_classes: int
) -> dict[str, Any]:
    """Return the example parameters of a mechanism beside epsilon.

    Three numbers for each class where it asks both for numbers and for classes.
    """
    arguments = signature(cls).parameters.values()
    needed = [a.name for a in arguments if a.default is a.empty]
    values = example_params(epsilon, n_classes)
    if {"d", "n_classes"} <= {*needed}:
        values["d"] *= n_classes
    return {name: values[name] for name in needed if name != "epsilon"}


def example_params(epsilon: float, n_classes: int = MORE) -> dict[str, Any]:
    """Return the example values of mechanisms' parameters."""
    total = n_classes * (n_classes + 1) / 2
    return {
        "d": 3,
        "n_classes": n_classes,
        "delta": 1e-5,
        "prior": tuple(rank / total for rank in range(n_classes, 0, -1)),
        # A unary code with a third of epsilon on the bit of the label.
        "p": 1 / (1 + math.exp(-epsilon / 3)),
        "q": 1 / (1 + math.exp(2 * epsilon / 3)),
    }


def production_messages() -> list[tuple[str, str]]:
    """Return (protocol, message) of all messages in production.

    Messages about tables are examined form by form
    (`curvote.systems.transfer.audit.tables`), those tied to a public record are
    `code_names`.
    """
    return _record_messages([system for system in all_systems() if system.production])


def study_messages() -> list[tuple[str, str]]:
    """Return (protocol, message) of study messages of other kinds.

    What else is simulated only sends messages of a kind that is `production_messages`.
    """
    released = (messages_of(name)[asks] for name, asks in production_messages())
    kinds = tuple({type(message) for message in released})
    only = _record_messages([s for s in all_systems() if not s.production])
    return [(p, m) for p, m in only if not isinstance(messages_of(p)[m], kinds)]


def _record_messages(every: Iterable[System]) -> list[tuple[str, str]]:
    return [
        (system.name, name)
        for system in every
        for name, message in system.messages.items()
        if not message.per_record and not message.per_table
    ]


def code_names(counts: tuple[int, ...] = (MORE,)) -> list[str]:
    """Return the names of messages about labels of public records.

    Two rounds are simulated only, and their messages are of their own.
    """
    worded = [WORDED] if MORE in counts else []
    return worded + [
        message_name(system.name, name, k)
        for system in all_systems()
        for name, message in system.messages.items()
        if message.per_record
        for k in counts
    ]


def message_names() -> list[str]:
    """Return the names of messages: ``protocol.message``, or with classes.

    ``protocol.message@4`` is about so many.
    """
    return [*released_names(), *_names_for_counts(study_messages())]


def released_names() -> list[str]:
    """Return the names of messages that are released by production."""
    return _names_for_counts(production_messages())


def outcome_names(sizes: tuple[int, ...] = (2, MORE)) -> list[str]:
    """Return the names of messages about a model, with so many words."""
    every = production_messages()
    about = [(p, asks) for p, asks in every if messages_of(p)[asks].about_model]
    return _names_for_counts(about, sizes)


def many_class_names() -> list[str]:
    """Return the names of messages with `MANY` classes, and of codes."""
    messages = [*production_messages(), *study_messages()]
    more = [*code_names(CODED), *outcome_names((9,))]  # a question of three classes
    return [*_names_for_counts(messages, MANY), *more]


def _names_for_counts(
    every: Iterable[tuple[str, str]], counts: tuple[int, ...] = (2, MORE)
) -> list[str]:
    allowed = []
    for (protocol, asks), k in product(every, counts):
        message = messages_of(protocol)[asks]
        with suppress(UserError):
            message.check_task(example_task(protocol, asks, 1.0, k))
            allowed.append(message_name(protocol, asks, k))
    return allowed


def message_name(protocol: str, asks: str, n_classes: int) -> str:
    """Return the name of a message that is about so many classes."""
    return f"{protocol}.{asks}" + (f"@{n_classes}" if n_classes > 2 else "")


def example_task(
    protocol: str, asks: str, epsilon: float, n_classes: int = 2, n_words: int = 0
) -> Any:
    """Return a task that asks for one message of a protocol: of four coefficients.

    Or of the code of a label, where that is asked, and of one of ``n_words`` with it.
    """
    message = messages_of(protocol)[asks]
    if (example := message.example_task(n_classes, epsilon)) is not None:
        return example
    words = ("-1", "+1") if n_classes == 2 else map(str, range(n_classes))
    classes = Classes(words)
    named: dict[str, Any] = {"protocol": protocol, "asks": asks}
    if n_words:
        named["words"] = {"tier": [f"tier {word}" for word in range(n_words)]}
        pairs = product(classes, named["words"]["tier"])
        classes = Classes(map(BESIDE.join, pairs))
    if message.per_record:
        return task_class(protocol)(classes, epsilon, message.mechanism, **named)
    encoding = Encoding(
        _example_projection(), "tanh", {"centre": np.zeros(4), "scale": np.ones(4)}
    )
    return message.nominal_task(Task(encoding, classes, epsilon, **named))


@cache
def _example_projection() -> Projection:
    return projection("bspline", 4, np.linspace(0, 1, 30))


def task_named(name: str, epsilon: float) -> Any:
    """Return the task of a message's name."""
    named, _, classes = name.partition("@")
    protocol, asks = named.split(".")[-2:]
    counts = [int(count) for count in (classes or "2").split("x")]
    return example_task(protocol, asks, epsilon, *counts)
