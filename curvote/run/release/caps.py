"""The most that a client may spend: set once in the ledger, never by a setting.

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


def refuse_higher(ledger: Ledger, population: str, stated: Budget) -> None:
    """Refuse a cap in pipelines.yaml above that of the ledger, if it has one."""
    cap = ledger.cap(population)
    if cap and (stated.epsilon > cap.epsilon or stated.delta > cap.delta):
        raise UserError(
            f"per_client allows {stated} for each client of population {population!r},"
            f" but the ledger's cap is {cap}, set when the first release was made."
            " Nothing is released. Write that cap here, or raise it for good:"
            f" `{command(population, stated, cap)}`.",
            where=("ledger", "per_client"),
        )


def set_up(ledger: Ledger, population: str, stated: Budget) -> None:
    """Set the cap of a population at its first release; refuse a higher one later."""
    if ledger.cap(population) is None:
        ledger.set_up(population, stated)
    refuse_higher(ledger, population, stated)


def command(population: str, stated: Budget, cap: Budget) -> str:
    """Return the command that raises ``cap`` to hold ``stated``."""
    words = ["curvote", "ledger", "raise-cap", shlex.quote(population)]
    words += ["--epsilon", _written(max(stated.epsilon, cap.epsilon))]
    if stated.delta > cap.delta:
        words += ["--delta", _written(stated.delta)]
    return " ".join(words)


def _written(value: float) -> str:
    """Return a number in full: a rounded one might be a lower cap."""
    return repr(float(value)).removesuffix(".0")
