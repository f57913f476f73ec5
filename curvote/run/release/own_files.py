"""Whose clients are in a user's own file, where pipelines.yaml does not say.

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

from curvote.client.ledger import Entry, Ledger, existing
from curvote.run.config.file import Configured, PipelinesFile
from curvote.run.config.source import given
from curvote.run.project import Project


def settled(
    project: Project, configured: Configured, book: Ledger | None = None
) -> Configured:
    """Return a release of clients here with its population stated; others as they are.

    It is the one that the ledger tells: ``book``, or the project's own.
    """
    pipeline, accounts = configured.pipeline, configured.pipeline.ledger
    here = pipeline.production and not pipeline.intake and given(pipeline.source)
    if not here or accounts is None or accounts.population:
        return configured
    entries = book.entries() if book else _entries(project)
    named = _population(project, configured, [e for e in entries if e.counts])
    own = accounts.model_copy(update={"population": named})
    pipeline = pipeline.model_copy(update={"ledger": own})
    (only,) = configured.settings  # production is one setting
    return replace(
        configured, pipeline=pipeline, settings=(replace(only, pipeline=pipeline),)
    )


def _entries(project: Project) -> Sequence[Entry]:
    ledger = existing(project.ledger)
    if ledger is None:
        return ()
    with ledger:
        return ledger.entries()


def by_file(source: Mapping[str, Any]) -> str | None:
    """Return what a source's file would be called as a population; None: no file."""
    path = source.get("path")
    return normpath(str(path)) if path else None


def _population(
    project: Project, configured: Configured, entries: Sequence[Entry]
) -> str:
    first, source = configured.pipeline.population, configured.pipeline.source
    mine = [e.population for e in entries if e.facts.get("pipeline") == configured.name]
    if mine:
        return mine[-1]
    owners = {e.facts.get("pipeline") for e in entries if e.population == first}
    path = by_file(source)
    return path if path and _others(project, owners, path) else first


def _others(project: Project, owners: Collection[Any], path: str) -> bool:
    """Say whether all who released are still here, and each reads another file."""
    pipelines = PipelinesFile(project).values["pipelines"]
    paths = [_path(pipelines.get(owner)) for owner in owners]
    return bool(paths) and all(one and one != path for one in paths)


def _path(stated: Any) -> str | None:
    source = stated.get("source") if isinstance(stated, dict) else None
    return by_file(source) if isinstance(source, dict) else None
