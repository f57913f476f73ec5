"""What a person agrees to before noise is drawn, and what is refused unasked."""

from __future__ import annotations

from typing import Final

from curvote.classes import Classes
from curvote.client.standing import Standing
from curvote.client.words import factor, printable, said
from curvote.errors import UserError
from curvote.privacy import Budget, refuse_delta

INIT: Final = "`curvote client init` sets yours, once"


def refuse_server(standing: Standing, server: str) -> None:
    """Refuse whoever is not the server that this client answers."""
    if standing.server not in {None, server}:
        raise UserError(
            f"server {server} asks, but you answer {standing.server} only, once and for"
            " all. Somebody may have replaced the task on its way. Nothing was drawn."
        )


def refuse_classes(agreed: Classes | None, asked: Classes) -> None:
    """Refuse other classes than those ``agreed`` to, None: any, before the record.

    A list without one of the words would else be refused by those with this label
    alone, and silence would tell it.
    """
    if agreed is not None and set(agreed) != set(asked):
        raise UserError(
            f"the task is about the classes {'/'.join(map(printable, asked))}, but you"
            f" agree to {'/'.join(agreed)} only. Nothing was drawn."
        )


def refuse_budget(standing: Standing, budget: Budget) -> None:
    """Refuse what the cap has no room for, and too much delta, whatever the cap."""
    refuse_delta(budget.delta)
    if not standing.has_room(budget):
        mine = "your cap" if standing.chosen else f"the house's cap ({INIT})"
        raise UserError(
            f"there is no room for {said(budget.epsilon, budget.delta)}: {mine} is"
            f" {said(standing.cap.epsilon, standing.cap.delta)}, of which"
            f" {said(*standing.spent.floats())} is spent. Nothing was drawn."
        )


def notices(standing: Standing, server: str) -> list[str]:
    """Return what else a person must hear: what is decided here for the first time."""
    found = []
    if not standing.chosen:
        found.append(
            f"you have set no cap ({INIT}), so the house's holds from now on:"
            f" {said(standing.cap.epsilon, standing.cap.delta)}"
        )
    if standing.server is None:
        found.append(
            f"server {server} is new, and the only one that you answer from now on:"
            " compare this fingerprint with one that you got another way"
        )
    return found


def line(standing: Standing, budget: Budget, server: str, what: str) -> str:
    """Return the one line that a client consents to; ``what`` is sent, in words."""
    left, _ = standing.left(budget)
    pin = "pinned" if standing.server else "new"
    delta = f"delta {budget.delta:g}"
    if budget.delta:
        delta += " (the chance that more comes out)"
    return (
        f"{printable(standing.name)} sends one noised {what} to server {server[:12]}.."
        f" ({pin}): epsilon {budget.epsilon:g} (whoever reads it may change any odds"
        f" about you by a factor of at most {factor(budget.epsilon)}), {delta};"
        f" {left:g} of your cap of {standing.cap.epsilon:g} is left after it"
    )
