"""What is asked before a release of clients that are here: the ledger, caps, people."""

from __future__ import annotations

import sys

from curvote.client.ledger import existing
from curvote.privacy import Budget
from curvote.run import caps, evidence, populations, releases_log
from curvote.run.config import Configured
from curvote.run.identity import People
from curvote.run.project import Project


def check(
    project: Project,
    configured: Configured,
    people: People,
    *,
    new_people: bool,
    writing: bool,
) -> None:
    """Refuse what earlier releases do not fit to, before anything is reserved.

    UserError, with what to do: a ledger that is gone or older, a cap above the
    ledger's, known people under a new name. ``writing``: a run, not a plan, so what a
    killed one left out of the second copy is added.
    """
    evidence.refuse_other_ledger(project)
    if writing:
        _complete_copy(project)
    _refuse_higher_cap(project, configured)
    populations.refuse_strangers(project, configured, people, new_people=new_people)


def _complete_copy(project: Project) -> None:
    """Complete the second copy; where it alone is gone, write it again and say so."""
    path, ledger = releases_log.path_of(project), existing(project.ledger)
    if ledger is None:
        return
    gone = not path.exists()
    with ledger:
        if releases_log.catch_up(project, ledger) and gone:
            words = "was not there: it was written again from the ledger"
            print(f"curvote: {path} {words}.", file=sys.stderr)


def _refuse_higher_cap(project: Project, configured: Configured) -> None:
    ledger, accounts = existing(project.ledger), configured.pipeline.ledger
    if ledger is None or accounts is None:
        return
    with ledger:
        stated = Budget(**accounts.per_client.model_dump())
        caps.refuse_higher(ledger, configured.pipeline.population, stated)
