"""What is asked before a release of clients that are here: the ledger, caps, people."""

from __future__ import annotations

from contextlib import nullcontext

from curvote.client.ledger import existing
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
    accounts = releases_log.Accounts(project)
    named = accounts.witnesses
    evidence.refuse_other_ledger(project, named, accounts.populations)
    with existing(project.ledger) or nullcontext() as ledger:
        if ledger is None:
            return
        if writing:
            releases_log.complete(project, ledger, named)
        pipeline = configured.pipeline
        if pipeline.ledger:
            stated = Budget(**pipeline.ledger.per_client.model_dump())
            caps.refuse_higher(ledger, pipeline.population, stated)
        populations.refuse_strangers(ledger, configured, people, new_people=new_people)
        if writing:
            populations.tell_apart(ledger, configured)
