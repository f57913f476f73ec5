"""Production releases: checks and state before a plan, and the action for each."""

from __future__ import annotations

from contextlib import nullcontext

from curvote.client.ledger import open_existing
from curvote.privacy import Budget
from curvote.run.config.file import ConfiguredPipeline
from curvote.run.plan.identity import Population
from curvote.run.project import Project
from curvote.run.release import caps, evidence, populations, releases_log


def check_before_release(
    project: Project,
    configured: ConfiguredPipeline,
    people: Population,
    *,
    new_people: bool,
    writing: bool,
) -> None:
    """Refuse a release that contradicts ledger, caps or known populations.

    UserError, with what to do: a ledger that is gone or older, a cap above the
    ledger's, known people under a new name. ``writing``: a run, not a plan, so what a
    killed one left out of the second copy is added.
    """
    accounts = releases_log.ProjectAccounts(project)
    witnesses = accounts.witnesses
    evidence.refuse_incomplete_ledger(project, witnesses, accounts.populations)
    with open_existing(project.ledger) or nullcontext() as ledger:
        if ledger is None:
            return
        if writing:
            releases_log.complete_copies(project, ledger, witnesses)
        pipeline = configured.pipeline
        if pipeline.ledger:
            cap = Budget(**pipeline.ledger.per_client.model_dump())
            caps.refuse_higher_cap(ledger, pipeline.population, cap)
        populations.refuse_strangers(ledger, configured, people, new_people=new_people)
        if writing:
            populations.report_separate_population(ledger, configured)
