"""Many servers: each learns on its own, then they share what they have learnt."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import flow

from curvote.run.execute import DEFAULT_BLOCK
from curvote.run.planner import Selection
from flows.stages import RUNNER, Asked, planned
from tasks.aggregate import aggregate
from tasks.combine import combine
from tasks.evaluate import evaluate
from tasks.exchange import exchange
from tasks.ingest import ingest
from tasks.privatize import privatize
from tasks.project import project as project_curves
from tasks.reevaluate import reevaluate
from tasks.report import report
from tasks.train import train


@flow(
    name="federate",
    flow_run_name="{pipeline}",
    task_runner=RUNNER,
    validate_parameters=False,
)
def federate(
    pipeline: str,
    project: str,
    *,
    overrides: Sequence[str] = (),
    replicates: int | None = None,
    seed: int | None = None,
    only: str | None = None,
    start: str | None = None,
    force: Sequence[str] = (),
    new_release: bool = False,
    new_people: bool = False,
    workers: int | None = None,
    block: int = DEFAULT_BLOCK,
) -> str:
    """Run one pipeline of protocol ``federated``; return the id of its run record.

    A task does a stage for all servers of all replicates.
    """
    chosen = Selection(only, start, tuple(force))
    new = new_release, new_people
    asked = Asked(overrides, replicates, seed, chosen, *new, workers, block)
    with planned(pipeline, project, asked) as run:
        run.stage(ingest)
        run.stage(project_curves)

        # Every server by itself: a classifier from its own reports and votes.
        run.stage(privatize)
        run.stage(train)
        run.stage(evaluate)
        run.stage(aggregate)

        # Together: every server's clients judge what the other servers have.
        run.stage(exchange)
        run.stage(reevaluate)
        run.stage(combine)

        run.stage(report)
    return run.record.id
