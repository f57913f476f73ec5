"""The commands on runs, and those that run papers' pipelines or a schedule."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from curvote.base.errors import UserError, did_you_mean
from curvote.cli import terminal
from curvote.flows import environment
from curvote.papers.rows import to_json
from curvote.pipeline.config.project import Project, find_project

RunId = Annotated[str | None, typer.Option("--run", help="A run's id, or NAME~1.")]


def scores(
    pipeline: terminal.Pipeline,
    run_id: RunId = None,
    metric: Annotated[
        str | None, typer.Option(help="Only this measure, such as accuracy.")
    ] = None,
    as_json: terminal.Json = False,
    project: terminal.ProjectOption = None,
) -> None:
    """Print the scores of a pipeline's latest completed run, or of another one."""
    from curvote.pipeline.run.results import mean_scores, reputations
    from curvote.pipeline.run.run_object import require_scores
    from curvote.pipeline.store.records import completed_run

    place = terminal.open_store(project)
    record = completed_run(place, pipeline, run_id)
    if run_id is not None:
        require_scores(place, record)
    rows = mean_scores(place, record)
    if not rows and (models := [*reputations(place, record).values()]):
        if as_json:
            documents = [{"pipeline": pipeline} | model.document() for model in models]
            terminal.print_json(documents)
        else:
            typer.echo("\n".join(model.title for model in models))
        return
    if not rows:
        raise UserError(
            f"{pipeline} is in production, where nobody knows the true error: `curvote"
            f" report {pipeline}` shows what is known."
        )
    if as_json:
        terminal.print_json(rows)
        return
    from curvote.cli.tables import print_scores

    print_scores(record, rows, metric)


def rehearse(
    pipeline: terminal.Pipeline,
    clients: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Made-up clients that a round waits for (default: as few as do).",
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", help="A new folder that keeps the made-up project."),
    ] = None,
    project: terminal.ProjectOption = None,
) -> None:
    """Play the real day of a production pipeline with made-up clients; spends nothing.

    Tasks, invitations, answers over HTTP, all refusals, the close, the report.
    """
    terminal.require_package("pyarrow")
    with terminal.interruptible(f"rehearse {pipeline}", "begins anew"):
        place = find_project(project, starter=True)
        with environment.fast_imports():
            from curvote.cli.commands.rehearsal import rehearse_pipeline
        rehearse_pipeline(place, pipeline, clients, keep)


def report(
    pipeline: terminal.Pipeline,
    run_id: RunId = None,
    project: terminal.ProjectOption = None,
) -> None:
    """Draw the report page of the latest run, or of an earlier one; print its path.

    An earlier run has a page of its own.
    """
    place = terminal.open_store(project)
    environment.prepare_environment(place.root)
    from curvote.pipeline.store.records import completed_run
    from curvote.report.page import draw_report as draw

    typer.echo(str(draw(place, completed_run(place, pipeline, run_id))))


def certify(
    pipeline: terminal.Pipeline,
    *,
    out: Annotated[Path, typer.Option("--out", help="Folder for the files.")],
    run_id: RunId = None,
    project: terminal.ProjectOption = None,
) -> None:
    """Write a signed certificate of a run, and programs by which strangers check it.

    Of the pipeline's latest completed run, or of another one.
    """
    place = terminal.open_store(project)
    from curvote.pipeline.store.records import completed_run
    from curvote.report.certificate.document import write_certificate

    lines = write_certificate(place, completed_run(place, pipeline, run_id), out)
    typer.echo("\n".join(lines))


_COLUMNS = ("run", "pipeline", "started", "status", "main", "changed")
RunName = Annotated[
    str,
    typer.Argument(help="A run's id; NAME: its latest run, NAME~1: the one before."),
]


def runs(
    pipeline: Annotated[str | None, typer.Argument(help="Only its runs.")] = None,
    last: Annotated[int, typer.Option(min=1, help="How many of the latest runs.")] = 20,
    as_json: terminal.Json = False,
    project: terminal.ProjectOption = None,
) -> None:
    """List runs: when, how they ended, their main number, and what was changed."""
    rows = list_runs(terminal.open_project(project), pipeline, last)
    if as_json:
        terminal.print_json(rows)
        return
    if not rows:
        typer.echo("Nothing has run yet; `curvote run NAME` runs a pipeline.")
        return
    terminal.print_rows(
        rows, [c for c in _COLUMNS if not (pipeline and c == "pipeline")]
    )


def list_runs(
    project: Project, pipeline: str | None, last: int
) -> list[dict[str, Any]]:
    """Return a row for each of the ``last`` runs, the latest first.

    UserError: nothing of this name has run.
    """
    from curvote.pipeline.run.history import describe_change, run_state
    from curvote.pipeline.store import artifacts, records

    names = records.pipeline_names(project)
    if pipeline is not None and pipeline not in names:
        hint = did_you_mean(pipeline, names)
        raise UserError(f"{pipeline} has not run yet.{hint}")
    rows = []
    for record in reversed(records.load_records(project, pipeline, last=last)):
        status = run_state(project, record, environment.is_alive)
        earlier = records.previous_run(project, record)
        # The main number as it is kept, where its scores are still there.
        completed = status == "completed"
        headline = records.headline(project, record.id) if completed else None
        main, stages = headline or ("", [])
        scored = {(s["stage"], s["key"]) for s in record.steps if s["stage"] in stages}
        score_artifacts = (
            artifacts.stored_artifact(project, *place) for place in scored
        )
        altered = any(artifact.problem(content=False) for artifact in score_artifacts)
        if completed and (headline is None or altered):
            from curvote.flows.tracking.cells import main_number

            main = main_number(project, record)
        row = {
            "run": record.id,
            "pipeline": record.pipeline,
            "started": record.started,
            "finished": record.finished,
            "status": status,
            "overrides": record.overrides,
            "main": main,
            "changed": describe_change(earlier, record),
        }
        rows.append(row)
    return rows


def diff(
    a: RunName,
    b: RunName,
    every: Annotated[bool, typer.Option("--all", help="Also what is equal.")] = False,
    page: Annotated[
        bool, typer.Option("--page", help="Draw a page with both figures.")
    ] = False,
    as_json: terminal.Json = False,
    project: terminal.ProjectOption = None,
) -> None:
    """Say what differs between two runs: settings, stages and scores."""
    from curvote.pipeline.run.comparison import compare_runs

    place = terminal.open_project(project)
    comparison = compare_runs(place, a, b)
    drawn_page = None
    if page:
        environment.prepare_environment(place.root)
        from curvote.report.page import draw_comparison

        drawn_page = draw_comparison(place, comparison)
    if as_json:
        page_entry = {"page": str(drawn_page) if drawn_page else None}
        terminal.print_json(comparison.to_document() | page_entry)
        return
    from curvote.cli.tables import print_comparison

    print_comparison(comparison, every=every, page=drawn_page)


def show(
    pipeline: terminal.Pipeline,
    overrides: terminal.Overrides = [],  # noqa: B006 - typer copies the default
    as_json: terminal.Json = False,
    project: terminal.ProjectOption = None,
) -> None:
    """Print a pipeline with every default filled in, and what it is for."""
    from curvote.papers.registry import file_of
    from curvote.pipeline.config.settings import describe_choices
    from curvote.pipeline.config.yaml_document import as_yaml

    file = file_of(terminal.open_project(project, starter=True), pipeline)
    values = file.configure_pipeline(pipeline, overrides).values()
    if as_json:
        terminal.print_json(values)
        return
    stated_values: dict[str, Any] = {k: v for k, v in values.items() if v is not None}
    remarks = (stated_values.pop("description", None), *describe_choices(values))
    for line in filter(None, remarks):
        typer.echo(f"# {line}")
    typer.echo(as_yaml({pipeline: stated_values}, brief=True), nl=False)


def reproduce(
    name: Annotated[str, typer.Argument(help="Its name in `curvote list --all`.")],
    replicates: terminal.Replicates = None,
    seed: terminal.Seed = None,
    engine: terminal.EngineName = None,
    workers: terminal.Workers = None,
    as_json: terminal.Json = False,
    project: terminal.ProjectOption = None,
) -> None:
    """Make a published table or figure again; print it beside the published one.

    `beyond` compares curvote's own methods with the published ones.
    """
    from curvote.papers.registry import find_entry

    entry = find_entry(name)
    place = find_project(project, starter=True)
    options: dict[str, Any] = {"replicates": replicates, "seed": seed}
    options |= {"engine": engine, "workers": workers}
    records = []
    with terminal.interruptible(f"reproduce {name}"):
        if entry.pipelines:  # formulas alone need no Prefect
            environment.prepare_environment(place.root)
            from curvote.cli.run import run_reproduction

            records = run_reproduction(place, entry, options)
        rows, written = entry.compare(place, records)
    if as_json:
        typer.echo(to_json(rows))
        return
    typer.echo(f"{entry.heading}\n")
    terminal.print_rows(*entry.laid_out(rows))
    paths = map(terminal.relative_to_here, written)
    for line in (*entry.conclusions(rows), "\nwritten:", *paths):
        typer.echo(line)


_SHOWN_FIRINGS = 5


def serve(
    port: Annotated[int, typer.Option(help="Port of Prefect's pages.")] = 4200,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only say when pipelines run next, and stop."),
    ] = False,
    as_json: terminal.Json = False,
    metrics_port: terminal.MetricsPort = None,
    log_format: terminal.LogFormat = "text",
    project: terminal.ProjectOption = None,
) -> None:
    """Run pipelines by the schedules in pipelines.yaml, until Ctrl-C."""
    from curvote.flows.serving import schedules as firings
    from curvote.pipeline.config.file import PipelinesFile

    place = find_project(project)
    if check:
        schedules = PipelinesFile(place).schedules()
        environment.prepare_environment(place.root)
        firings.check_schedules(schedules)
        now, rows = datetime.now(UTC), list[dict[str, Any]]()
        for name, schedule in schedules.items():
            dates = firings.firing_times(schedule, after=now, count=_SHOWN_FIRINGS)
            row = {"pipeline": name, "schedule": firings.describe_schedule(schedule)}
            row |= {"catch_up": schedule.get("catch_up")}
            rows.append(row | {"next": [date.isoformat() for date in dates]})
        if as_json:
            terminal.print_json(rows)
            return
        for row in rows:
            words = f"{row['pipeline']}: {row['schedule']}"
            typer.echo("\n  ".join([words, *row["next"]]))
        if not rows:
            typer.echo("No pipeline has a schedule.")
        return
    schedules, faulty = firings.read_schedules(place)
    environment.prepare_environment(place.root)
    if as_json:
        raise UserError("--json is for --check; for lines take --log-format json.")
    from curvote.flows import lines
    from curvote.flows.serving.service import serve_schedules

    lines.set_format(log_format)
    serve_schedules(
        place, schedules, port=port, metrics_port=metrics_port, faulty=faulty
    )


def ui(
    port: Annotated[int, typer.Option(help="Port of MLflow's pages.")] = 5000,
    project: terminal.ProjectOption = None,
) -> None:
    """Open MLflow's pages, where runs are compared, until Ctrl-C."""
    place = find_project(project)
    environment.prepare_environment(place.root)
    from curvote.flows.tracking.ui import serve_ui

    serve_ui(place, port)
