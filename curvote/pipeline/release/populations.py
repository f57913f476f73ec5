"""Populations of clients: names for users' files, and checks of new people.

The first file of a kind that releases is population ``table`` or ``curves``, as its
source is called. Another file beside it is a population of its own, called by its path.
What is not certain stays with the first: a ledger that counts two peoples together
counts too much; the other mistake would give somebody a second budget.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from posixpath import normpath
from typing import Any

from curvote.base.errors import UserError
from curvote.ledger.amounts import Entry
from curvote.ledger.book import Ledger, open_existing
from curvote.pipeline.config.file import ConfiguredPipeline, PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.source import reads_user_file
from curvote.pipeline.plan.identity import Population


def with_population(
    project: Project, configured: ConfiguredPipeline, book: Ledger | None = None
) -> ConfiguredPipeline:
    """Return a pipeline with its population stated, if it releases a user's file.

    It is the one that the ledger tells: ``book``, or the project's own.
    """
    pipeline, accounts = configured.pipeline, configured.pipeline.ledger
    local = pipeline.production and not pipeline.intake
    local = local and reads_user_file(pipeline.source)
    if not local or accounts is None or accounts.population:
        return configured
    entries = book.entries() if book else ledger_entries(project)
    counting = [entry for entry in entries if entry.counts]
    population = _choose_population(project, configured, counting)
    ledger_settings = accounts.model_copy(update={"population": population})
    pipeline = pipeline.model_copy(update={"ledger": ledger_settings})
    (only,) = configured.settings  # production is one setting
    settings = (replace(only, pipeline=pipeline),)
    return replace(configured, pipeline=pipeline, settings=settings)


def ledger_entries(project: Project, population: str | None = None) -> list[Entry]:
    """Return the entries of the project's ledger; none if it does not exist."""
    ledger = open_existing(project.ledger)
    if ledger is None:
        return []
    with ledger:
        return ledger.entries(population)


def population_of_file(source: Mapping[str, Any]) -> str | None:
    """Return the population name of a source's file; None: it has no file."""
    path = source.get("path")
    return normpath(str(path)) if path else None


def _choose_population(
    project: Project, configured: ConfiguredPipeline, entries: Sequence[Entry]
) -> str:
    first, source = configured.pipeline.population, configured.pipeline.source
    previous = [
        e.population for e in entries if e.facts.get("pipeline") == configured.name
    ]
    if previous:
        return previous[-1]
    owners = {e.facts.get("pipeline") for e in entries if e.population == first}
    path = population_of_file(source)
    if not path:
        return first
    pipelines, paths = PipelinesFile(project).values["pipelines"], []
    for owner in owners:
        pipeline = pipelines.get(owner)
        owned = pipeline.get("source") if isinstance(pipeline, dict) else None
        paths.append(population_of_file(owned) if isinstance(owned, dict) else None)
    # It is another file if all earlier releases came from others.
    return path if paths and all(other and other != path for other in paths) else first


def refuse_strangers(
    ledger: Ledger,
    configured: ConfiguredPipeline,
    people: Population,
    *,
    new_people: bool,
) -> None:
    """Refuse a cohort that looks like known people under a new name: UserError.

    With ``new_people`` the ledger is told that they are others instead.
    """
    suspicion = _suspicion_of_cohort(ledger, configured, people)
    declared = f"new people {people.cohort}"
    if suspicion is None or ledger.setting(declared) is not None:
        return
    if new_people:
        population = configured.pipeline.population
        ledger.store_setting(declared, population)
        ledger.store_setting(_new_people_setting(population), "told")
        return
    raise UserError(
        f"{suspicion} Nothing is released. Only if these are other people: `curvote"
        f" run {configured.name} --new-people`.",
        where=("ledger", "population"),
    )


def report_separate_population(ledger: Ledger, configured: ConfiguredPipeline) -> None:
    """Report that a file is counted as a population of its own."""
    population = configured.pipeline.population
    populations = {e.population for e in ledger.entries() if e.counts}
    separate = population == population_of_file(configured.pipeline.source)
    if separate and population not in populations:
        print(
            f"curvote: the clients of {population} are counted as a population of"
            f" their own, apart from {', '.join(sorted(populations))}. If some are the"
            " same people under other ids, end this run now and write `population:`.",
            file=sys.stderr,
        )


def _suspicion_of_cohort(
    ledger: Ledger, configured: ConfiguredPipeline, people: Population
) -> str | None:
    """Return the reason why a cohort may be known people, or None."""
    population = configured.pipeline.population
    counting = [e for e in ledger.entries() if e.counts]
    if not counting or any(e.facts.get("cohort") == people.cohort for e in counting):
        return None
    earlier = [
        e.population for e in counting if e.facts.get("pipeline") == configured.name
    ]
    if earlier and population not in earlier:
        return _renamed_message(configured.name, earlier[-1], population)
    arguments = ledger, configured, people, counting
    return _suspicion_of_overlap(*arguments) or _suspicion_of_respelling(*arguments)


def _suspicion_of_respelling(
    ledger: Ledger,
    configured: ConfiguredPipeline,
    people: Population,
    counting: Sequence[Entry],
) -> str | None:
    """Return the reason why ids may be respelt ids of known people, or None."""
    population = configured.pipeline.population
    n, n_known = len(people.senders), ledger.count_spenders(population)
    new = n - ledger.count_overlap(population, people.senders)
    if 2 * new <= n:
        return None
    for other in sorted({e.population for e in counting} - {population}):
        if 2 * ledger.count_overlap(other, people.senders) > n:
            return _renamed_message(configured.name, other, population)
    absent = n_known - ledger.count_overlap(population, people.everybody)
    if absent and absent >= min(new, n_known / 2):
        return (
            f"{new} of {n} clients of {configured.name} are new to"
            f" population {population!r}, while {absent} of its {n_known} known"
            " clients are not in the source any more: if their ids were only written in"
            " another way (1000 as p1000 or 01000), write them as before."
        )
    return None


def _suspicion_of_overlap(
    ledger: Ledger,
    configured: ConfiguredPipeline,
    people: Population,
    counting: Sequence[Entry],
) -> str | None:
    """Return the reason why people of two files may be the same, or None.

    That they are others was for nobody to say: the file's path names the population.
    """
    population = configured.pipeline.population
    if population != population_of_file(configured.pipeline.source):
        return None
    if ledger.setting(_new_people_setting(population)) is not None:
        return None
    for other in sorted({e.population for e in counting} - {population}):
        n = ledger.count_overlap(other, people.senders)
        if n:
            return (
                f"{n} of {len(people.senders)} clients of {configured.name} have ids"
                f" that are known in population {other!r}, where they have spent. If"
                f" they are the same people, write `population: {other}`."
            )
    return None


def _new_people_setting(population: str) -> str:
    """Return the ledger's setting which says that a population is new people."""
    return f"new people of {population}"


def _renamed_message(name: str, before: str, population: str) -> str:
    return (
        f"the clients of {name} are known in population {before!r}, where they have"
        f" spent; as population {population!r} they would begin anew. Write"
        f" `population: {before}` again."
    )
