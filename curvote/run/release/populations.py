"""Whether people who are new to the ledger are really other people.

A new name of the population, or ids that another program wrote, would give the same
people a new budget. Nobody but the user can know that they are others: ``--new-people``
says so, once for a cohort, and the ledger keeps it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from curvote.client.ledger import Entry, Ledger
from curvote.errors import UserError
from curvote.run.config.file import Configured
from curvote.run.plan.identity import People
from curvote.run.release.own_files import by_file


def refuse_strangers(
    ledger: Ledger, configured: Configured, people: People, *, new_people: bool
) -> None:
    """Refuse a cohort that looks like known people under a new name: UserError.

    With ``new_people`` the ledger is told that they are others instead.
    """
    suspicion = _suspicion(ledger, configured, people)
    declared = f"new people {people.cohort}"
    if suspicion is None or ledger.setting(declared) is not None:
        return
    if new_people:
        population = configured.pipeline.population
        ledger.settle_once(declared, population)
        ledger.settle_once(_others(population), "told")
        return
    raise UserError(
        f"{suspicion} Nothing is released. Only if these are other people: `curvote"
        f" run {configured.name} --new-people`.",
        where=("ledger", "population"),
    )


def tell_apart(ledger: Ledger, configured: Configured) -> None:
    """Say that a file is a population of its own, before its first release."""
    population = configured.pipeline.population
    known = {e.population for e in ledger.entries() if e.counts}
    if population == by_file(configured.pipeline.source) and population not in known:
        print(
            f"curvote: the clients of {population} are counted as a population of"
            f" their own, apart from {', '.join(sorted(known))}. If some are the same"
            " people under other ids, end this run now and write `population:`.",
            file=sys.stderr,
        )


def _suspicion(ledger: Ledger, configured: Configured, people: People) -> str | None:
    """Return why a cohort may be known people, or None."""
    population = configured.pipeline.population
    counting = [e for e in ledger.entries() if e.counts]
    if not counting or any(e.facts.get("cohort") == people.cohort for e in counting):
        return None
    mine = [
        e.population for e in counting if e.facts.get("pipeline") == configured.name
    ]
    if mine and population not in mine:
        return _renamed(configured.name, mine[-1], population)
    return _shared(ledger, configured, people, counting) or _respelt(
        ledger, configured, people, counting
    )


def _respelt(
    ledger: Ledger, configured: Configured, people: People, counting: Sequence[Entry]
) -> str | None:
    """Return why most of a cohort may be known people under other names, or None."""
    population = configured.pipeline.population
    n, known = len(people.senders), ledger.n_spent(population)
    new = n - ledger.overlap(population, people.senders)
    if 2 * new <= n:
        return None
    for other in sorted({e.population for e in counting} - {population}):
        if 2 * ledger.overlap(other, people.senders) > n:
            return _renamed(configured.name, other, population)
    absent = known - ledger.overlap(population, people.everybody)
    if absent and absent >= min(new, known / 2):
        return (
            f"{new} of {n} clients of {configured.name} are new to"
            f" population {population!r}, while {absent} of its {known} known"
            " clients are not in the source any more: if their ids were only written in"
            " another way (1000 as p1000 or 01000), write them as before."
        )
    return None


def _shared(
    ledger: Ledger, configured: Configured, people: People, counting: Sequence[Entry]
) -> str | None:
    """Return why people of a file may be those of another: they have ids in common.

    That they are others was for nobody to say: the file's path names the population.
    """
    population = configured.pipeline.population
    if population != by_file(configured.pipeline.source):
        return None
    if ledger.setting(_others(population)) is not None:
        return None
    for other in sorted({e.population for e in counting} - {population}):
        n = ledger.overlap(other, people.senders)
        if n:
            return (
                f"{n} of {len(people.senders)} clients of {configured.name} have ids"
                f" that are known in population {other!r}, where they have spent. If"
                f" they are the same people, write `population: {other}`."
            )
    return None


def _others(population: str) -> str:
    """Return the setting which holds that people of a population are nobody else's."""
    return f"new people of {population}"


def _renamed(name: str, before: str, population: str) -> str:
    return (
        f"the clients of {name} are known in population {before!r}, where they have"
        f" spent; as population {population!r} they would begin anew. Write"
        f" `population: {before}` again."
    )
