"""Consent of a data owner: refusals, notices and the line that is agreed to."""

from typing import Final

from curvote.base.classes import Classes
from curvote.base.errors import UserError
from curvote.base.privacy import Budget, refuse_delta
from curvote.base.text import format_budget, format_factor, format_names, printable_name
from curvote.ledger.account import Account
from curvote.ledger.amounts import Amount

INIT_HINT: Final = "`curvote client init` sets yours, once"


def refuse_other_server(account: Account, server: str) -> None:
    """Refuse a server other than the pinned one."""
    if account.server not in {None, server}:
        raise UserError(
            f"server {server} asks, but you answer {account.server} only, once and for"
            " all. Somebody may have replaced the task on its way. Nothing was drawn."
        )


def refuse_other_sender(account: Account, sender_name: str, records: str) -> None:
    """Refuse an invitation for another sender, or other names of records.

    What was spent about a person would else be forgotten under the new name.
    """
    if account.sender_name not in {None, sender_name}:
        raise UserError(
            f"the invitation is for {printable_name(sender_name)}, but this ledger is"
            f" that of {account.sender_name}. Another server's records need a ledger of"
            " their own (--ledger). Nothing was drawn."
        )
    if account.records not in {None, records}:
        raise UserError(
            f"the records are named by {printable_name(records)}, but this ledger knows"
            f" them by {account.records}: it would take them for others, and forget"
            " what was spent about them. Name them as before (--id-column). Nothing was"
            " drawn."
        )


def refuse_registry_ledger(account: Account) -> None:
    """Refuse a person's label from a ledger of many records.

    It would count for its owner, and not for the record that it is about.
    """
    if account.records is not None:
        raise UserError(
            "this ledger counts for many records, each by itself: give their labels as"
            " a table (--table), or a ledger of your own (--ledger). Nothing was drawn."
        )


def refuse_personal_ledger(account: Account) -> None:
    """Refuse a table of many records from a person's ledger."""
    if account.spent != Amount():
        raise UserError(
            f"{printable_name(account.name)} has spent"
            f" {format_budget(*account.spent.to_floats())} for a record of their own"
            " from this ledger: other people's records need another (--ledger). Nothing"
            " was drawn."
        )


def refuse_other_classes(agreed: Classes | None, task_classes: Classes) -> None:
    """Refuse a task with other classes than those agreed to.

    A list without one of the words would else be refused by those with this label
    alone, and silence would tell it.
    """
    if agreed is not None and set(agreed) != set(task_classes):
        raise UserError(
            f"the task is about the classes {format_names(task_classes)}, but you"
            f" agree to {'/'.join(agreed)} only. Nothing was drawn."
        )


def refuse_excess_budget(account: Account, budget: Budget, records: int = 1) -> None:
    """Refuse a budget beyond the cap, and too large a delta."""
    refuse_delta(budget.delta, records)
    if not account.has_room(budget):
        cap_name = "your cap" if account.chosen else f"the default cap ({INIT_HINT})"
        scope = " for each record" if account.records else ""
        raise UserError(
            f"there is no room for {format_budget(budget.epsilon, budget.delta)}:"
            f" {cap_name} is"
            f" {format_budget(account.cap.epsilon, account.cap.delta)}{scope}, of which"
            f" {format_budget(*account.spent.to_floats())} is spent. Nothing was drawn."
        )


def consent_notices(account: Account, server: str) -> list[str]:
    """Return notices about decisions that this consent makes."""
    notices = []
    if not account.chosen:
        notices.append(
            f"you have set no cap ({INIT_HINT}), so the default holds from now on:"
            f" {format_budget(account.cap.epsilon, account.cap.delta)}"
        )
    if account.server is None:
        notices.append(
            f"server {server} is new to you and the only one that you answer from now"
            " on: compare this fingerprint with one that you got in another way"
        )
    return notices


def consent_line(
    account: Account,
    budget: Budget,
    server: str,
    what: str,
    n: int = 0,
    *,
    together: bool = False,
) -> str:
    """Return the line that an owner consents to.

    The message is about a record of their own; of ``n`` others there is one each, or
    ``together`` one about all of them.
    """
    name, whom = printable_name(account.name), "any one of these people"
    if together:
        name = printable_name(str(account.sender_name))
        sends = f"the number of its records, {n}, as it is, and one noised {what} about"
        sends += " them"
    elif n:
        sends = f"one noised {what} of each of {n} records"
    else:
        sends, whom = f"one noised {what}", "you"
    return f"{name} sends {sends} to {_describe_cost(account, budget, server, whom)}"


def _describe_cost(account: Account, budget: Budget, server: str, whom: str) -> str:
    remaining, remaining_delta = account.remaining(budget)
    pin = "pinned" if account.server else "new"
    delta, rest, cap = f"delta {budget.delta:g}", f"{remaining:g}", account.cap
    total = f"{cap.epsilon:g}"
    if budget.delta:
        delta += " (the chance that more comes out)"
    if account.sender_name:
        rest = format_budget(remaining, remaining_delta)
        total = format_budget(cap.epsilon, cap.delta)
    return (
        f"server {server[:12]}.. ({pin}): epsilon {budget.epsilon:g} (whoever reads it"
        f" may change any odds about {whom} by a factor of at most"
        f" {format_factor(budget.epsilon)}), {delta}; {rest} of your cap of {total} is"
        " left after it"
    )
