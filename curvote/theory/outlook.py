"""What protocol ``auto`` takes and what to expect, for signals nobody knows yet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from curvote import validate
from curvote.protocols.choice import Choice, choose
from curvote.theory.direct import Expectation, expect_direct
from curvote.theory.signals import Signal, strengths

NO_GAIN = 0.01  # over the majority: not worth a budget


@dataclass(frozen=True)
class Row:
    """One epsilon: the rule's choice, and the error of `direct` for each signal."""

    epsilon: float
    choice: Choice
    expected: dict[str, Expectation]
    majority: float

    def nothing(self, name: str) -> bool:
        """Say whether the majority does as well with this signal, to a point."""
        return self.majority - self.expected[name].error < NO_GAIN

    def document(self) -> dict[str, Any]:
        """Return plain values."""
        direct = {
            name: asdict(found) | {"nothing_gained": self.nothing(name)}
            for name, found in self.expected.items()
        }
        return {"epsilon": self.epsilon} | asdict(self.choice) | {"direct": direct}


@dataclass(frozen=True)
class Outlook:
    """A row for each epsilon, beside the majority's error and the best rules'."""

    clients: int
    features: int
    positive: float
    signals: dict[str, Signal]
    rows: list[Row]

    @property
    def majority(self) -> float:
        """The error of always naming the larger class."""
        return min(self.positive, 1 - self.positive)

    def document(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "clients": self.clients,
            "features": self.features,
            "positive": self.positive,
            "majority": self.majority,
            "best": {name: signal.best for name, signal in self.signals.items()},
            "rows": [row.document() for row in self.rows],
        }


def look_ahead(
    clients: int, features: int, epsilons: Iterable[float], positive: float = 0.5
) -> Outlook:
    """Return what to expect of ``clients`` >= 2 with records of ``features`` numbers.

    Each reports once, with each of ``epsilons`` in turn. ``positive`` is the share of
    class +1. Values out of range are a UserError.
    """
    asked = [validate.positive(epsilon=epsilon) for epsilon in epsilons]
    n = validate.at_least(2, clients=clients)
    d = validate.at_least(1, features=features)
    known = strengths(positive)
    rows = [_row(n, d, epsilon, known) for epsilon in asked]
    return Outlook(n, d, positive, known, rows)


def _row(n: int, d: int, epsilon: float, known: dict[str, Signal]) -> Row:
    expected = {
        name: expect_direct(n, d, epsilon, signal) for name, signal in known.items()
    }
    majority = next(iter(known.values())).majority
    return Row(epsilon, choose(n, d, epsilon), expected, majority)
