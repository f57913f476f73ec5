"""One run from the command line: a server of its own, the chain, and what it found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

from curvote.errors import InternalError
from curvote.flows.environment import imports
from curvote.flows.notices import notify, telling
from curvote.flows.output import lines
from curvote.flows.output.terminal import from_here, interruptible
from curvote.flows.server.flow_runs import sweep
from curvote.flows.server.private import PrefectServer
from curvote.flows.stopped import in_words, watching
from curvote.run.history import RunRecord, completed, load
from curvote.run.project import Project

Row = dict[str, Any]  # of `scores --json`
BLOCKED = 3


def run_chain(project: Project, given: dict[str, Any]) -> None:
    """Run the chain, print its table and the report's path, then let MLflow know.

    A run that waits for envelopes ends with exit code 3: a script can tell it from one
    that is done.
    """
    with interruptible(f"run {given['pipeline']}"):
        run_id = _run(project, given, _print_results)
    record = load(project, run_id)
    if record and record.status == "blocked":
        raise SystemExit(BLOCKED)


def completed_run(project: Project, given: dict[str, Any]) -> RunRecord:
    """Run the chain and return what is known of it; a blocked one is a UserError."""
    run_id = _run(project, given, lambda _project, _run_id: None)
    return completed(project, given["pipeline"], run_id)


def _run(
    project: Project,
    given: dict[str, Any],
    tell: Callable[[Project, str], list[Row] | None],
) -> str:
    """Return the id of the run, after its results were told and logged."""
    pipeline, own = given["pipeline"], PrefectServer(project.root)
    with telling(project, pipeline):
        with own as server, in_words(project):
            # Imports take as long as the server: both at once.
            with imports():
                from curvote.flows.chain import chain
                from curvote.flows.tracking import log as tracking

                tracking.preload(project)
            server.wait()
            sweep()
            stated = {name: value for name, value in given.items() if value is not None}
            gone = partial(notify, project, "failed", pipeline)
            with nullcontext() if server.is_ours else watching(server.url, gone):
                run_id = str(chain(project=str(project.root), **stated))
            rows = tell(project, run_id)
        tracking.repair(project, {run_id: rows} if rows else {})
        return run_id


def _print_results(project: Project, run_id: str) -> list[Row] | None:
    """Print what a run found; return its scores where there are any."""
    from curvote.flows.output.tables import print_outcomes, print_scores
    from curvote.flows.tracking.headline import of_study
    from curvote.run.falls import fallen
    from curvote.run.results import notes, outcomes
    from curvote.run.summary import summary

    record = load(project, run_id)
    if record is None:
        raise InternalError(f"the record of run {run_id} is gone")
    done = Counter(step["action"] for step in record.steps)
    text = f"run {run_id}: {len(record.steps)} steps, {done['reuse']} reused"
    text += f", {done['copy']} copied" if done["copy"] else ""
    lines.say(text, run=run_id, pipeline=record.pipeline)
    if record.status != "completed":
        return None
    rows: list[Row] = []
    if record.config.get("mode") == "production":
        print_outcomes(record, outcomes(project, record))
        for line in fallen(project, record):
            print(line)
    else:
        rows = summary(project, record)
        print_scores(record, rows)
        if title := of_study(record, rows).title:
            print(f"main: {title}")
    for line in notes(project, record):
        print(line)
    page = project.reports / record.pipeline / "report.html"
    print(f"report: {from_here(page)}", flush=True)
    return rows
