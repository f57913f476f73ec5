"""Exact amounts of privacy budget, and the entries of a ledger as values.

A budget counts as the decimal number that it is written as: ten releases of 0.1 make
exactly 1. (As a binary fraction 0.1 is slightly more than 1/10, and ten of them would
not fit into a cap of 1; summed as doubles, many small releases could vanish.) The
decimal text of a double differs from it by less than one part in 10^15.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation
from functools import reduce
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.privacy import Budget

# Sums of doubles, 1e-324 to 1e308, need fewer than 700 digits; rounding is an error.
EXACT_CONTEXT = Context(prec=1000, traps=[Inexact, InvalidOperation, DivisionByZero])
# A cap that was divided by n in floating point must hold n such releases: parts may be
# some units in the last place too large. The room for that is absolute: a share of the
# cap would grow with it. A cap without delta has no room for any.
EPSILON_ROOM = Decimal("1e-10")
DELTA_ROOM = Decimal("1e-18")


@dataclass(frozen=True)
class Amount:
    """An exact amount (epsilon, delta) of spent budget, possibly zero."""

    epsilon: Decimal = Decimal(0)
    delta: Decimal = Decimal(0)

    @classmethod
    def from_budget(cls, budget: Budget) -> Amount:
        """Return a budget as an exact decimal amount."""
        parts = float(budget.epsilon), abs(float(budget.delta))
        return cls.from_texts(*map(repr, parts))

    @classmethod
    def from_texts(cls, epsilon: str, delta: str) -> Amount:
        """Return the amount that `texts` wrote."""
        return cls(*map(EXACT_CONTEXT.create_decimal, (epsilon, delta)))

    def to_texts(self) -> tuple[str, str]:
        """Return epsilon and delta as canonical decimal text."""
        normalize = EXACT_CONTEXT.normalize
        return str(normalize(self.epsilon)), str(normalize(self.delta))

    def plus(self, other: Amount) -> Amount:
        """Return the sum: sequential composition (Dwork & Roth 2014, theorem 3.14)."""
        add = EXACT_CONTEXT.add
        return Amount(add(self.epsilon, other.epsilon), add(self.delta, other.delta))

    def minus(self, other: Amount) -> Amount:
        """Return the difference: ``other`` taken away."""
        less = EXACT_CONTEXT.subtract
        return Amount(less(self.epsilon, other.epsilon), less(self.delta, other.delta))

    def within(self, cap: Amount) -> bool:
        """Return whether neither part exceeds the cap beyond rounding."""
        room = Amount(EPSILON_ROOM, DELTA_ROOM if cap.delta else Decimal(0))
        return cap.plus(room).at_least(self)

    def at_least(self, other: Amount) -> bool:
        """Return whether neither part is below the other's, exactly."""
        return self.epsilon >= other.epsilon and self.delta >= other.delta

    def budget(self) -> Budget:
        """Return the amount as a budget, rounded up."""
        return Budget(*self.to_floats())

    def least(self, other: Amount) -> Amount:
        """Return the lower of each part."""
        return Amount(min(self.epsilon, other.epsilon), min(self.delta, other.delta))

    def most(self, other: Amount) -> Amount:
        """Return the higher of each part."""
        return Amount(max(self.epsilon, other.epsilon), max(self.delta, other.delta))

    def to_floats(self) -> tuple[float, float]:
        """Return epsilon and delta as floats, rounded up."""
        return _float_up(self.epsilon), _float_up(self.delta)

    def __str__(self) -> str:
        epsilon, delta = self.to_floats()
        return f"epsilon {epsilon:g}" + (f", delta {delta:g}" if delta else "")


def _float_up(exact: Decimal) -> float:
    nearest = float(exact)
    short = Decimal(repr(nearest)) < exact
    return math.nextafter(nearest, math.inf) if short else nearest


ReleaseFacts = Mapping[str, str | int | float]

RESERVED: Final = "reserved"
CONFIRMED: Final = "confirmed"
CANCELLED: Final = "cancelled"
SPENT: Final = "spent"
# Names of settings: a head that a restored ledger was told of, and a release that
# concerns whoever comes to a population.
KNOWN_HEAD_SETTING: Final = "told of "
EVERYONE_SETTING: Final = "everyone "

SELECT_ENTRIES: Final = """SELECT release, name, state, epsilon, delta, cap_epsilon,
cap_delta, n_clients, facts, reserved, settled, place, digest, reason
FROM releases JOIN populations ON populations.id = releases.population"""


@dataclass(frozen=True)
class Entry:
    """One release in a ledger: its clients, cost, state and facts.

    ``state`` is reserved, confirmed, cancelled or spent. ``cap`` is the limit that the
    clients' totals were held to. Times are UTC, ISO 8601: ``reserved``, and ``settled``
    when the release was confirmed, cancelled or spent. ``place`` and ``digest`` say
    what was published (confirmed), ``reason`` why nobody knows (spent).
    """

    release: str
    population: str
    state: str
    budget: Budget
    cap: Budget | None
    n_clients: int
    facts: dict[str, str | int | float]
    reserved: str
    settled: str | None
    place: str | None
    digest: str | None
    reason: str | None

    @property
    def counts(self) -> bool:
        """Whether the release counts against a cap: unless it was cancelled."""
        return self.state != CANCELLED

    @property
    def confirmed(self) -> str | None:
        """The time of confirmation, or None."""
        return self.settled if self.state == CONFIRMED else None


@dataclass(frozen=True)
class SpentTotals:
    """The total spending of each client of a population: arrays (n,).

    ``clients`` holds the ids as text. The doubles, read as decimal text, are never
    below the exact sums.
    """

    clients: NDArray[np.str_]
    epsilon: NDArray[np.float64]
    delta: NDArray[np.float64]


def read_entry(row: Any) -> Entry:
    """Return the entry in a row of `SELECT_ENTRIES`."""
    release, population, state, epsilon, delta, cap_epsilon, cap_delta = row[:7]
    n_clients, facts, *rest = row[7:]
    budget = Amount.from_texts(epsilon, delta).budget()
    cap = None
    if cap_epsilon is not None:
        cap = Amount.from_texts(cap_epsilon, cap_delta).budget()
    about = release, population, state
    return Entry(*about, budget, cap, n_clients, json.loads(facts), *rest)


def sum_entries(entries: Iterable[Entry]) -> tuple[float, float]:
    """Return the total epsilon and delta of releases about one client."""
    counting = (Amount.from_budget(entry.budget) for entry in entries if entry.counts)
    return reduce(Amount.plus, counting, Amount()).to_floats()
