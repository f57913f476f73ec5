"""What a person agrees to before noise is drawn, and what is refused unasked."""

from __future__ import annotations

from typing import Final

from curvote.classes import Classes
from curvote.client.ledger_amounts import Amount
from curvote.client.standing import Standing
from curvote.client.words import factor, listed, printable, said
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


def refuse_sender(standing: Standing, called: str, records: str) -> None:
    """Refuse a table of another hospital, or one that names its records otherwise.

    What was spent about a person would else be forgotten under the new name.
    """
    if standing.called not in {None, called}:
        raise UserError(
            f"the invitation is for {printable(called)}, but this ledger is that of"
            f" {standing.called}. Another server's records need a ledger of their own"
            " (--ledger). Nothing was drawn."
        )
    if standing.records not in {None, records}:
        raise UserError(
            f"the records are named by {printable(records)}, but this ledger knows"
            f" them by {standing.records}: it would take them for others, and forget"
            " what was spent about them. Name them as before (--id). Nothing was drawn."
        )


def refuse_registry(standing: Standing) -> None:
    """Refuse a label of one's own from a ledger that counts for many records.

    It would count for its owner, and not for the record that it is about.
    """
    if standing.records is not None:
        raise UserError(
            "this ledger counts for many records, each by itself: give their labels as"
            " a table (--table), or a ledger of your own (--ledger). Nothing was drawn."
        )


def refuse_own(standing: Standing) -> None:
    """Refuse a table of many records from the ledger of one of these people."""
    if standing.spent != Amount():
        raise UserError(
            f"{printable(standing.name)} has spent {said(*standing.spent.floats())} for"
            " a record of their own from this ledger: other people's records need"
            " another (--ledger). Nothing was drawn."
        )


def refuse_classes(agreed: Classes | None, asked: Classes) -> None:
    """Refuse other classes than those ``agreed`` to, None: any, before the record.

    A list without one of the words would else be refused by those with this label
    alone, and silence would tell it.
    """
    if agreed is not None and set(agreed) != set(asked):
        raise UserError(
            f"the task is about the classes {listed(asked)}, but you"
            f" agree to {'/'.join(agreed)} only. Nothing was drawn."
        )


def refuse_budget(standing: Standing, budget: Budget, records: int = 1) -> None:
    """Refuse what the cap has no room for, and too much delta, whatever the cap."""
    refuse_delta(budget.delta, records)
    if not standing.has_room(budget):
        mine = "your cap" if standing.chosen else f"the house's cap ({INIT})"
        whom = " for each record" if standing.records else ""
        raise UserError(
            f"there is no room for {said(budget.epsilon, budget.delta)}: {mine} is"
            f" {said(standing.cap.epsilon, standing.cap.delta)}{whom}, of which"
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
    return (
        f"{printable(standing.name)} sends one noised {what} to"
        f" {_cost(standing, budget, server, 'you')}"
    )


def line_about(
    standing: Standing, budget: Budget, server: str, what: str, n: int
) -> str:
    """Return the same line of a sender whose message is about ``n`` records."""
    return (
        f"{printable(str(standing.called))} sends the number of its records, {n}, as it"
        f" is, and one noised {what} about them to"
        f" {_cost(standing, budget, server, 'any one of these people')}"
    )


def line_each(
    standing: Standing, budget: Budget, server: str, what: str, n: int
) -> str:
    """Return the same line of who sends a message of each of ``n`` public records."""
    return (
        f"{printable(standing.name)} sends one noised {what} of each of {n} records to"
        f" {_cost(standing, budget, server, 'any one of these people')}"
    )


def _cost(standing: Standing, budget: Budget, server: str, whom: str) -> str:
    left, left_delta = standing.left(budget)
    pin = "pinned" if standing.server else "new"
    delta, rest, cap = f"delta {budget.delta:g}", f"{left:g}", standing.cap
    of = f"{cap.epsilon:g}"
    if budget.delta:
        delta += " (the chance that more comes out)"
    if standing.called:
        rest, of = said(left, left_delta), said(cap.epsilon, cap.delta)
    return (
        f"server {server[:12]}.. ({pin}): epsilon {budget.epsilon:g} (whoever reads it"
        f" may change any odds about {whom} by a factor of at most"
        f" {factor(budget.epsilon)}), {delta}; {rest} of your cap of {of} is left"
        " after it"
    )
