"""Entries of a ledger and sums over them, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.client.ledger_amounts import Amount
from curvote.privacy import Budget

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
    cap = (
        None
        if cap_epsilon is None
        else Amount.from_texts(cap_epsilon, cap_delta).budget()
    )
    about = release, population, state
    return Entry(*about, budget, cap, n_clients, json.loads(facts), *rest)


def sum_entries(entries: Iterable[Entry]) -> tuple[float, float]:
    """Return the total epsilon and delta of releases about one client."""
    counting = (Amount.from_budget(entry.budget) for entry in entries if entry.counts)
    return reduce(Amount.plus, counting, Amount()).to_floats()
