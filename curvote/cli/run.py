"""Runs from the command line: a server for each, the flow, and printed results."""

import os
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, nullcontext, redirect_stdout, suppress
from functools import partial
from typing import Any

from curvote.base.errors import InternalError, Problem, UserError
from curvote.cli.terminal import interruptible, relative_to_here
from curvote.data import raw_files as raw
from curvote.flows import environment, lines, machine, notices
from curvote.flows.recorded_run import RunRequest, reuse_everything
from curvote.flows.server.flow_runs import close_dead_flow_runs
from curvote.flows.server.private import PrefectServer, is_own_server
from curvote.papers.registry import file_of
from curvote.papers.reproduction import Entry
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.source import MissingFiles, raw_file_names, raw_files
from curvote.pipeline.store.records import RunRecord, completed_run, load_record
from curvote.tasks.context import RedactedError

Row = dict[str, Any]  # of `scores --json`
BLOCKED_EXIT = 3


def run_and_print(project: Project, options: dict[str, Any]) -> None:
    """Run the flow, which prints its results before it logs the run in MLflow.

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
    """Run the flow and return the run's id; where all is reused there is no flow.

    A server that the user names is told of every run.
    """
    warm_seconds = PipelinesFile(project).runtime().prefect.keep_seconds
    pipeline, names = options["pipeline"], options.keys() - {"pipeline"}
    request = RunRequest(**{n: options[n] for n in names if options[n] is not None})
    with ExitStack() as stack:
        stack.enter_context(notices.failures_noticed(project, pipeline))
        if not os.environ.get("PREFECT_API_URL"):
            with machine.explained_errors(project):
                run_id = reuse_everything(project, pipeline, request, tell)
            if run_id is not None:
                return run_id
        server = PrefectServer(project.root, warm_seconds=warm_seconds)
        stack.enter_context(server)
        stack.enter_context(machine.explained_errors(project))
        # Imports take as long as the server: both at once.
        with environment.fast_imports():
            from curvote.flows.chain import command_run
            from curvote.flows.tracking import log as tracking

            tracking.preload(project)
        server.wait()
        if is_own_server(project.state, server.url):  # others' runs live elsewhere
            close_dead_flow_runs()
        send_failure = partial(notices.send_notice, project, "failed", pipeline)
        watched = machine.server_watched(server.url, send_failure)
        arguments = pipeline, str(project.root), request, tell
        with nullcontext() if server.is_ours else watched:
            try:
                return str(command_run(*arguments))
            except RedactedError as error:
                original = error.original
            raise original  # in its words: this terminal is its owner's


def _print_results(project: Project, run_id: str) -> list[Row] | None:
    """Print the results of a run; return its scores, if there are any."""
    from curvote.cli.tables import print_outcomes, print_scores
    from curvote.flows.tracking.cells import study_headline
    from curvote.pipeline.run import results

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
        print_outcomes(project, record)
        for line in results.drift_alerts(project, record):
            print(line)
    else:
        rows = results.mean_scores(project, record)
        print_scores(record, rows)
        if title := study_headline(record, rows).title:
            print(f"main: {title}")
    for line in results.run_notes(project, record):
        print(line)
    page = project.reports / record.pipeline / "report.html"
    print(f"report: {relative_to_here(page)}", flush=True)
    return rows


def run_reproduction(
    project: Project, entry: Entry, options: dict[str, Any]
) -> list[RunRecord]:
    """Run the pipelines of ``entry``; return their records.

    ``options`` is what the user set of replicates, seed, engine and workers. Standard
    output stays free: whatever a run prints goes to standard error.
    """
    options = options | {"replicates": options["replicates"] or entry.replicates}
    fixed = {name: options[name] for name in ("replicates", "seed")}
    pipelines = [
        file_of(project, name).configure_pipeline(name, **fixed).pipeline
        for name in entry.pipelines
    ]
    with redirect_stdout(sys.stderr):
        # All files before the first run; missing ones are reported together.
        problems: list[Problem] = []
        absent: list[str] = []
        by_files = {raw_file_names(pipeline): pipeline for pipeline in pipelines}
        for pipeline in by_files.values():
            try:
                raw_files(project, pipeline, fetch=True)
            except UserError as error:
                problems += error.problems
                with suppress(UserError):  # a file is here, but damaged: that is told
                    files = raw_files(project, pipeline, fetch=False)
                    absent += files.names if isinstance(files, MissingFiles) else ()
        if absent:
            catalogue = raw.catalogue(project.root)
            sources = (catalogue[name] for name in dict.fromkeys(absent))
            listed = ", ".join(f"{source.file} ({source.url})" for source in sources)
            text = (
                f"{entry.name} needs {listed}: put them into"
                f" {raw.raw_folder(project.root)} or a folder that {raw.MIRROR} names,"
                " then repeat the command."
            )
            problems.append(Problem(text))
        if problems:
            raise UserError.several(problems)
        n, records = len(entry.pipelines), []
        for rank, name in enumerate(entry.pipelines, start=1):
            if n > 1:
                print(f"{name} ({rank} of {n})", file=sys.stderr, flush=True)
            records.append(run_to_completion(project, {"pipeline": name, **options}))
        return records
