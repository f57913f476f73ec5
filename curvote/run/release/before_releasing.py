"""What is asked before a release of clients that are here: the ledger, caps, people."""

from __future__ import annotations

import sys
from contextlib import nullcontext

from curvote.client.ledger import Ledger, existing
from curvote.privacy import Budget
from curvote.run.config.file import Configured
from curvote.run.plan.identity import People
from curvote.run.project import Project
from curvote.run.release import caps, evidence, populations, releases_log


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
    told = evidence.traces(project)
    with existing(project.ledger) or nullcontext() as ledger:
        evidence.refuse_other(project, told, ledger)
        if ledger is None:
            return
        if writing:
            _complete_copy(project, ledger)
        pipeline = configured.pipeline
        if pipeline.ledger:
            stated = Budget(**pipeline.ledger.per_client.model_dump())
            caps.refuse_higher(ledger, pipeline.population, stated)
        populations.refuse_strangers(ledger, configured, people, new_people=new_people)


def _complete_copy(project: Project, ledger: Ledger) -> None:
    """Complete the second copy; where it alone is gone, write it again and say so."""
    path = releases_log.path_of(project)
    gone = not path.exists()
    if releases_log.catch_up(project, ledger) and gone:
        words = "was not there: it was written again from the ledger"
        print(f"curvote: {path} {words}.", file=sys.stderr)
