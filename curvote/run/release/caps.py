"""Checks before releases, and the state of releases that a production plan needs.

``ledger.per_client`` of pipelines.yaml sets the cap of a population at its first
release. Afterwards a higher value there is refused: a cap is raised by a command of its
own, which says what it does. A lower value holds for the releases of that pipeline: two
pipelines of one population may differ, and asking for less is nobody's loss.
"""

from __future__ import annotations

import shlex

from curvote.client.ledger import Ledger
from curvote.errors import UserError
from curvote.privacy import Budget


def refuse_higher_cap(ledger: Ledger, population: str, requested: Budget) -> None:
    """Refuse a cap in pipelines.yaml above that of the ledger, if it has one."""
    cap = ledger.cap(population)
    if cap and (requested.epsilon > cap.epsilon or requested.delta > cap.delta):
        raise UserError(
            f"per_client allows {requested} for each client of population"
            f" {population!r},"
            f" but the ledger's cap is {cap}, set when the first release was made."
            " Nothing is released. Write that cap here, or raise it for good:"
            f" `{raise_cap_command(population, requested, cap)}`.",
            where=("ledger", "per_client"),
        )


def set_up_cap(ledger: Ledger, population: str, requested: Budget) -> None:
    """Set the cap of a population at its first release; refuse a higher one later."""
    if ledger.cap(population) is None:
        ledger.set_cap(population, requested)
    refuse_higher_cap(ledger, population, requested)


def raise_cap_command(population: str, requested: Budget, cap: Budget) -> str:
    """Return the command that raises ``cap`` so that it holds ``stated``."""
    words = ["curvote", "ledger", "raise-cap", shlex.quote(population)]
    words += ["--epsilon", _full_number(max(requested.epsilon, cap.epsilon))]
    if requested.delta > cap.delta:
        words += ["--delta", _full_number(requested.delta)]
    return " ".join(words)


def _full_number(value: float) -> str:
    """Return a number in full: a rounded one might be a lower cap."""
    return repr(float(value)).removesuffix(".0")
