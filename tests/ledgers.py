"""Ledgers for tests, what they say, and what they refuse."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.ledger.amounts import Entry
from curvote.ledger.book import Ledger

TENTH, ONE = Budget(0.1, 1e-8), Budget(1.0, 1e-6)
Says = tuple[list[Entry], list[tuple[str, float, float]], list[str]]


def reserve(ledger: Ledger, release: str, ids: Any, budget: Budget = TENTH) -> None:
    """Reserve in population p under a cap of 1."""
    ledger.set_cap("p", ONE)
    ledger.reserve(release, ids, budget, population="p", facts={"number": 1})


def filled(path: Path) -> Path:
    """Make a ledger with a release in each state, of 200 clients each."""
    with Ledger(path) as ledger:
        for i in range(4):
            reserve(ledger, f"r{i}", np.arange(50 * i, 200 + 50 * i))
        ledger.confirm("r0", place="data/r0", digest="00")
        ledger.cancel("r1")
        ledger.mark_spent("r2", "killed")
    return path


def says(path: Path) -> Says:
    """Return entries, sums and problems, through a connection of its own."""
    with Ledger(path) as ledger:
        spent = ledger.spent("p")
        arrays = (spent.clients.tolist(), spent.epsilon.tolist(), spent.delta.tolist())
        sums = sorted(zip(*arrays, strict=True))
        return ledger.entries(), sums, ledger.problems()


def refusal(call: Callable[[], object]) -> str | None:
    """Return the message of the UserError that a call ends in, or None."""
    try:
        call()
    except UserError as error:
        return str(error)
    return None
