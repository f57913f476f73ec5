"""Populations of clients: names for users' files, and checks of new people.

The first file of a kind that releases is population ``table`` or ``curves``, as its
source is called. Another file beside it is a population of its own, called by its path.
What is not certain stays with the first: a ledger that counts two peoples together
counts too much; the other mistake would give somebody a second budget.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from posixpath import normpath
from typing import Any

from curvote.client.ledger import Entry, Ledger, open_existing
from curvote.run.config.file import ConfiguredPipeline, PipelinesFile
from curvote.run.config.source import reads_user_file
from curvote.run.project import Project


def with_population(
    project: Project, configured: ConfiguredPipeline, book: Ledger | None = None
) -> ConfiguredPipeline:
    """Return a pipeline with its population stated, if it releases a user's file.

    It is the one that the ledger tells: ``book``, or the project's own.
    """
    pipeline, accounts = configured.pipeline, configured.pipeline.ledger
    local = (
        pipeline.production and not pipeline.intake and reads_user_file(pipeline.source)
    )
    if not local or accounts is None or accounts.population:
        return configured
    entries = book.entries() if book else _ledger_entries(project)
    population = _choose_population(
        project, configured, [e for e in entries if e.counts]
    )
    ledger_settings = accounts.model_copy(update={"population": population})
    pipeline = pipeline.model_copy(update={"ledger": ledger_settings})
    (only,) = configured.settings  # production is one setting
    return replace(
        configured, pipeline=pipeline, settings=(replace(only, pipeline=pipeline),)
    )


def _ledger_entries(project: Project) -> Sequence[Entry]:
    ledger = open_existing(project.ledger)
    if ledger is None:
        return ()
    with ledger:
        return ledger.entries()


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
    return path if path and _is_another_file(project, owners, path) else first


def _is_another_file(project: Project, owners: Collection[Any], path: str) -> bool:
    """Return whether all earlier releases came from files other than this one."""
    pipelines = PipelinesFile(project).values["pipelines"]
    paths = [_source_path(pipelines.get(owner)) for owner in owners]
    return bool(paths) and all(
        owner_path and owner_path != path for owner_path in paths
    )


def _source_path(pipeline: Any) -> str | None:
    source = pipeline.get("source") if isinstance(pipeline, dict) else None
    return population_of_file(source) if isinstance(source, dict) else None
