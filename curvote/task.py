"""Task description that a server publishes, and its strict form as JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.classes import Classes
from curvote.errors import UserError
from curvote.privacy import Budget
from curvote.representation.encoding import Encoding
from curvote.task_form import TASK_FORMAT, parse_task_form

Array = NDArray[np.float64]


class AnyTask(Protocol):
    """What every task states, whether about a record or about a table."""

    @property
    def protocol(self) -> str:
        """The system that the task belongs to."""
        ...

    @property
    def asks(self) -> str:
        """The message that it asks for."""
        ...

    @property
    def number(self) -> int:
        """How often the same question was asked before, from 1 on."""
        ...

    @property
    def classes(self) -> Classes:
        """The classes, in the publisher's words."""
        ...

    @property
    def epsilon(self) -> float | str:
        """The epsilon that one sender spends; a word says why it is none."""
        ...

    @property
    def mechanism(self) -> str:
        """The mechanism that noises the message."""
        ...

    @property
    def candidates(self) -> Candidates | None:
        """The classifiers that are voted on, None if there is no vote."""
        ...

    def cost(self, n: int = 1) -> Budget:
        """Return the cost of a message for each of the ``n`` records."""
        ...

    def for_server(self, server: str) -> AnyTask:
        """Return the task as it is for one of the named senders."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return the description as plain JSON values."""
        ...

    def digest(self) -> str:
        """Return the SHA-256 that names the task."""
        ...


@dataclass(frozen=True, eq=False)
class Candidates:
    """The B weak classifiers of a vote: coef (B, d), intercept (B,)."""

    coef: Array
    intercept: Array

    def __post_init__(self) -> None:
        coef = validate.finite(coef=self.coef)
        intercept = validate.finite(intercept=self.intercept)
        if coef.ndim != 2 or intercept.shape != (len(coef),):
            raise UserError(
                f"candidates have coef of shape {coef.shape} and intercept of shape"
                f" {intercept.shape}; they must be (B, d) and (B,)."
            )
        object.__setattr__(self, "coef", coef)
        object.__setattr__(self, "intercept", intercept)


@dataclass(frozen=True)
class Task:
    """One round of a protocol: what is asked of a client; every field is public.

    Parameters
    ----------
    encoding : Encoding
        How a record becomes numbers.
    classes : Classes
        The labels, in the publisher's words.
    epsilon : float
        What a client spends on the one message that is asked for.
    protocol : str
        The system that the task belongs to.
    asks : str
        The message that it asks for.
    mechanism : str, default=""
        What noises it.
    label_share : "equal" or float in (0, 1), default="equal"
        The part of the budget that the label gets.
    params : mapping, default={}
        The parameters of the mechanism, which a task has by the time it is published.
    number : int, default=1
        Counts the times that the same was asked.
    candidates : Candidates or None, default=None
        What the message is about, where it is a vote.

    Examples
    --------
    >>> import numpy as np
    >>> from curvote import DirectClassifier
    >>> X, y = np.tile([[-0.5], [0.5]], (100, 1)), np.tile(["no", "yes"], 100)
    >>> task = DirectClassifier(epsilon=2).fit(X, y).task_
    >>> print(task.protocol, task.asks, *task.classes, task.budget)
    direct report no yes epsilon 2
    >>> Task.from_json(task.to_json()).digest() == task.digest()
    True
    """

    encoding: Encoding
    classes: Classes
    epsilon: float
    protocol: str
    asks: str
    mechanism: str = ""
    label_share: float | str = "equal"
    params: Mapping[str, Any] = field(default_factory=dict)
    number: int = 1
    candidates: Candidates | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", Classes(self.classes))

    @property
    def budget(self) -> Budget:
        """The budget of one message: epsilon, and the mechanism's delta."""
        return Budget(self.epsilon, float(self.params.get("delta", 0.0)))

    def cost(self, n: int = 1) -> Budget:
        """Return the budget of a message, which is about one record."""
        validate.at_least(1, n=n)
        return self.budget

    def for_server(self, server: str) -> Task:
        """Refuse (UserError): the task names no senders."""
        raise UserError(
            f"the invitation is for {validate.format_value(server)}, but the task asks"
            " nobody"
            " by name."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the description as plain JSON values."""
        candidates = self.candidates and {
            "coef": self.candidates.coef.tolist(),
            "intercept": self.candidates.intercept.tolist(),
        }
        return {
            "format": TASK_FORMAT,
            "protocol": self.protocol,
            "asks": self.asks,
            "number": self.number,
            "classes": list(self.classes),
            "epsilon": self.epsilon,
            "mechanism": self.mechanism,
            "params": dict(self.params),
            "label_share": self.label_share,
            "encoding": self.encoding.to_json(),
            "candidates": candidates,
        }

    @classmethod
    def from_json(cls, text: Mapping[str, Any]) -> Task:
        """Build the task that `to_json` wrote; anything else is a UserError.

        Judged strictly (`curvote.task_form`): unknown keys, other types, NaN, numbers
        and sizes out of range. Whether a client may obey it is
        `curvote.protocols.judging`'s.
        """
        form = parse_task_form(text)
        encoding = form.encoding.model_dump()
        candidates = form.candidates
        return cls(
            encoding=Encoding.from_json(encoding),
            classes=Classes(form.classes),
            epsilon=form.epsilon,
            mechanism=form.mechanism,
            label_share=form.label_share,
            params=form.params,
            protocol=form.protocol,
            asks=form.asks,
            number=form.number,
            candidates=Candidates(candidates.coef, candidates.intercept)
            if candidates
            else None,
        )

    def digest(self) -> str:
        """Return the SHA-256 that names this task."""
        text = json.dumps(self.to_json(), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()
