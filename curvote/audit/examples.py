"""Small examples of what the audit examines where nothing else is named."""

from __future__ import annotations

import math
from collections.abc import Iterable
from inspect import signature
from typing import Any

import numpy as np

from curvote.chain.lookup import systems
from curvote.chain.system import System
from curvote.classes import Classes
from curvote.errors import UserError
from curvote.labels.task import Task as LabelTask
from curvote.mechanisms.base import Mechanism
from curvote.protocols.message import messages
from curvote.representation.basis import projection
from curvote.representation.encoding import Encoding
from curvote.task import Task

MORE = 4  # classes, where more than two are tried
MANY = (5, 26)  # classes, of messages alone
CODED = (2, 100)  # classes of labels, beside MORE


def asked_by(cls: type[Mechanism], epsilon: float, n_classes: int) -> dict[str, Any]:
    """Return what a mechanism is built with here, beside epsilon.

    Three numbers for each class where it asks both for numbers and for classes.
    """
    known = signature(cls).parameters.values()
    needed = [one.name for one in known if one.default is one.empty]
    given = params(epsilon, n_classes)
    if {"d", "n_classes"} <= {*needed}:
        given["d"] *= n_classes
    return {name: given[name] for name in needed if name != "epsilon"}


def params(epsilon: float, n_classes: int = MORE) -> dict[str, Any]:
    """Return what mechanisms are built with here, where they need more than epsilon."""
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


def asked() -> list[tuple[str, str]]:
    """Return (protocol, message) of all that clients are asked for in production.

    Messages about tables are examined form by form (`curvote.audit.servers.examples`),
    those tied to a public record are `codes`.
    """
    return _alone([one for one in systems() if one.production])


def studied() -> list[tuple[str, str]]:
    """Return those of messages that only studies send, of a kind of their own.

    What else is simulated only sends messages of a kind that is `asked`.
    """
    kinds = tuple({type(messages(protocol)[asks]) for protocol, asks in asked()})
    only = _alone([one for one in systems() if not one.production])
    return [one for one in only if not isinstance(messages(one[0])[one[1]], kinds)]


def _alone(every: Iterable[System]) -> list[tuple[str, str]]:
    """Return the messages of systems that are about one record, tied to none."""
    sent = [(one.name, it) for one in every for it in one.messages.items()]
    alone = [(system, *it) for system, it in sent if not it[1].tied]
    return [(system, name) for system, name, kind in alone if not kind.whole]


def codes(counts: tuple[int, ...] = (MORE,)) -> list[str]:
    """Return what `named` takes for messages about labels of public records.

    Two rounds are simulated only, and their messages are of their own.
    """
    sent = [(one.name, *it) for one in systems() for it in one.messages.items()]
    tied = [(system, name) for system, name, kind in sent if kind.tied]
    return [name_of(*one, k) for one in tied for k in counts]


def names() -> list[str]:
    """Return what `named` takes: ``protocol.message``, and those of more classes.

    ``protocol.message@4`` is about so many.
    """
    return [*released(), *_named(studied())]


def released() -> list[str]:
    """Return those that are released: in an envelope, or as the row of a table."""
    return _named(asked())


def many() -> list[str]:
    """Return those of `MANY` classes, where so many can be told apart, and codes."""
    return [*_named([*asked(), *studied()], MANY), *codes(CODED)]


def _named(
    every: Iterable[tuple[str, str]], counts: tuple[int, ...] = (2, MORE)
) -> list[str]:
    taken = [(*one, k) for one in every for k in counts if _takes(*one, k)]
    return [name_of(*one) for one in taken]


def _takes(protocol: str, asks: str, n_classes: int) -> bool:
    try:
        messages(protocol)[asks].admit(task(protocol, asks, 1.0, n_classes))
    except UserError:
        return False
    return True


def name_of(protocol: str, asks: str, n_classes: int) -> str:
    """Return the name of a message that is about so many classes."""
    return f"{protocol}.{asks}" + (f"@{n_classes}" if n_classes > 2 else "")


def task(protocol: str, asks: str, epsilon: float, n_classes: int = 2) -> Any:
    """Return a task that asks for one message of a protocol: of four coefficients.

    Or of the code of a label, where that is asked.
    """
    message = messages(protocol)[asks]
    words = ("-1", "+1") if n_classes == 2 else map(str, range(n_classes))
    classes = Classes(words)
    if message.tied:
        kind = message.mechanism
        return LabelTask(classes, epsilon, kind, protocol=protocol, asks=asks)
    onto = projection("bspline", 4, np.linspace(0, 1, 30))
    encoding = Encoding(onto, "tanh", {"centre": np.zeros(4), "scale": np.ones(4)})
    stated = Task(encoding, classes, epsilon, protocol=protocol, asks=asks)
    return message.rehearsal(stated)


def named(name: str, epsilon: float) -> Any:
    """Return the task of one of ``names``, whatever stands before it."""
    named, _, classes = name.partition("@")
    protocol, asks = named.split(".")[-2:]
    return task(protocol, asks, epsilon, int(classes or 2))
