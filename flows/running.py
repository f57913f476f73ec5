"""Runs from the command line: a server for each, the flow, and printed results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

from curvote.errors import InternalError
from curvote.flows.environment import fast_imports
from curvote.flows.notices import failures_noticed, send_notice
from curvote.flows.output import lines
from curvote.flows.output.terminal import interruptible, relative_to_here
from curvote.flows.server.flow_runs import close_dead_flow_runs
from curvote.flows.server.private import PrefectServer
from curvote.flows.stopped import explained_errors, server_watched
from curvote.run.history import RunRecord, completed_run, load_record
from curvote.run.project import Project

Row = dict[str, Any]  # of `scores --json`
BLOCKED_EXIT = 3


def run_and_print(project: Project, options: dict[str, Any]) -> None:
    """Run the flow, print its results, then log the run in MLflow.

    A run that waits for envelopes ends with exit code 3: a script can tell it from one
    that is done.
    """
    with interruptible(f"run {options['pipeline']}"):
        run_id = _run_flow(project, options, _print_results)
    record = load_record(project, run_id)
    if record and record.status == "blocked":
        raise SystemExit(BLOCKED_EXIT)


def run_to_completion(project: Project, options: dict[str, Any]) -> RunRecord:
    """Run the flow and return its record; a blocked run is a UserError."""
    run_id = _run_flow(project, options, lambda _project, _run_id: None)
    return completed_run(project, options["pipeline"], run_id)


def _run_flow(
    project: Project,
    options: dict[str, Any],
    tell: Callable[[Project, str], list[Row] | None],
) -> str:
    """Run the flow and return the run's id, after printing and logging."""
    pipeline, new_server = options["pipeline"], PrefectServer(project.root)
    with failures_noticed(project, pipeline):
        with new_server as server, explained_errors(project):
            # Imports take as long as the server: both at once.
            with fast_imports():
                from curvote.flows.chain import chain
                from curvote.flows.tracking import log as tracking

                tracking.preload(project)
            server.wait()
            close_dead_flow_runs()
            set_options = {
                name: value for name, value in options.items() if value is not None
            }
            send_failure = partial(send_notice, project, "failed", pipeline)
            with (
                nullcontext()
                if server.is_ours
                else server_watched(server.url, send_failure)
            ):
                run_id = str(chain(project=str(project.root), **set_options))
            rows = tell(project, run_id)
        tracking.log_missing_runs(project, {run_id: rows} if rows else {})
        return run_id


def _print_results(project: Project, run_id: str) -> list[Row] | None:
    """Print the results of a run; return its scores, if there are any."""
    from curvote.flows.output.tables import print_outcomes, print_scores
    from curvote.flows.tracking.headline import study_headline
    from curvote.run.falls import drift_alerts
    from curvote.run.results import production_outcomes, run_notes
    from curvote.run.summary import mean_scores

    record = load_record(project, run_id)
    if record is None:
        raise InternalError(f"the record of run {run_id} is gone")
    done = Counter(step["action"] for step in record.steps)
    text = f"run {run_id}: {len(record.steps)} steps, {done['reuse']} reused"
    text += f", {done['copy']} copied" if done["copy"] else ""
    lines.write_line(text, run=run_id, pipeline=record.pipeline)
    if record.status != "completed":
        return None
    rows: list[Row] = []
    if record.config.get("mode") == "production":
        print_outcomes(record, production_outcomes(project, record))
        for line in drift_alerts(project, record):
            print(line)
    else:
        rows = mean_scores(project, record)
        print_scores(record, rows)
        if title := study_headline(record, rows).title:
            print(f"main: {title}")
    for line in run_notes(project, record):
        print(line)
    page = project.reports / record.pipeline / "report.html"
    print(f"report: {relative_to_here(page)}", flush=True)
    return rows
