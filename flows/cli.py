"""The command ``curvote``; heavy imports stand inside commands: --help is instant."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from curvote.chain.commands import commands
from curvote.datasets.registry import DATASETS
from curvote.errors import UserError
from curvote.flows import doctor, environment
from curvote.flows.commands import audit as cli_audit
from curvote.flows.commands import client as cli_client
from curvote.flows.commands import data as cli_data
from curvote.flows.commands import intake as cli_intake
from curvote.flows.commands import ledger as cli_ledger
from curvote.flows.commands import pages as cli_pages
from curvote.flows.commands import predict as cli_predict
from curvote.flows.commands import reproduce as cli_reproduce
from curvote.flows.commands import status as cli_status
from curvote.flows.output import lines
from curvote.flows.output.ending import told
from curvote.flows.output.terminal import (
    EngineName,
    Json,
    LogFormat,
    MetricsPort,
    Pipeline,
    ProjectOption,
    Replicates,
    Seed,
    Workers,
    outside,
    say_json,
    top,
)
from curvote.flows.quantifying.command import utility
from curvote.mechanisms.registry import MECHANISMS
from curvote.run.project import Project, find_project

app = typer.Typer(
    name="curvote",
    help="Train classifiers from data that never leaves its owner unprotected.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.callback()(top)
for part in (cli_data, cli_ledger, cli_client, cli_intake):
    app.add_typer(part.app)

Set = Annotated[list[str], typer.Option("--set", help="Override a setting: a.b=v.")]
Schema = Annotated[
    bool, typer.Option("--schema", help="Print the JSON Schema of pipelines.yaml.")
]
Only = Annotated[str | None, typer.Option(help="Recompute just this stage.")]
From = Annotated[str | None, typer.Option("--from", help="Recompute from this stage.")]
Force = Annotated[list[str], typer.Option(help="Recompute this stage; must agree.")]
NewRelease = Annotated[
    bool, typer.Option("--new-release", help="Production: release again; spends again.")
]
NewPeople = Annotated[bool, typer.Option("--new-people", help="They are others.")]
Block = Annotated[int | None, typer.Option(min=1, help="Replicates done at once.")]


@app.command()
def demo(
    project: ProjectOption = None, engine: EngineName = None, workers: Workers = None
) -> None:
    """Run the small simulated pipeline, print its table and where its report is."""
    _run(project, pipeline="demo", engine=engine, workers=workers)


@app.command()
def run(
    pipeline: Pipeline,
    only: Only = None,
    start: From = None,
    force: Force = [],  # noqa: B006 - typer copies the default
    overrides: Set = [],  # noqa: B006 - typer copies the default
    new_release: NewRelease = False,
    new_people: NewPeople = False,
    replicates: Replicates = None,
    seed: Seed = None,
    engine: EngineName = None,
    workers: Workers = None,
    block: Block = None,
    log_format: LogFormat = "text",
    metrics_port: MetricsPort = None,
    project: ProjectOption = None,
) -> None:
    """Run a pipeline; what is unchanged is reused, what was killed goes on."""
    outside(_project(project), log_format, metrics_port)
    _run(
        project,
        pipeline=pipeline,
        only=only,
        start=start,
        force=force,
        overrides=overrides,
        new_release=new_release,
        new_people=new_people,
        replicates=replicates,
        seed=seed,
        engine=engine,
        workers=workers,
        block=block,
    )


@app.command()
def plan(
    pipeline: Pipeline,
    only: Only = None,
    start: From = None,
    force: Force = [],  # noqa: B006 - typer copies the default
    overrides: Set = [],  # noqa: B006 - typer copies the default
    replicates: Replicates = None,
    seed: Seed = None,
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Say what a run would do, stage by stage, and why; runs nothing."""
    from curvote.reproduce.lookup import file_of
    from curvote.run.planner import Selection, make_plan

    place = _project(project)
    file = file_of(place, pipeline)
    configured = file.configured(pipeline, overrides, replicates=replicates, seed=seed)
    with file.placing(pipeline):
        made = make_plan(place, configured, Selection(only, start, tuple(force)))
    rows = [step.row() for step in made.steps]
    if as_json:
        say_json(rows)
        return
    from curvote.flows.output.display import tell_choices
    from curvote.flows.output.tables import print_plan

    tell_choices(made)
    print_plan(rows)


@app.command("list")
def list_(
    as_json: Json = False, schema: Schema = False, project: ProjectOption = None
) -> None:
    """List pipelines, sources, mechanisms, learners, and what `reproduce` takes."""
    if schema:
        from curvote.run.config.editor import editor_schema

        say_json(editor_schema())
        return
    from curvote.chain.lookup import named
    from curvote.reproduce.lookup import reproductions
    from curvote.run.config.file import PipelinesFile

    known = {
        "pipelines": PipelinesFile(_project(project)).names(),
        "sources": list(DATASETS),
        "mechanisms": list(MECHANISMS),
        "learners": named("learner.name"),
        "reproduce": list(reproductions()),
    }
    if as_json:
        say_json(known)
        return
    for kind, names in known.items():
        typer.echo(f"{kind:11} {', '.join(names)}")


@app.command()
def scores(
    pipeline: Pipeline,
    run_id: Annotated[str | None, typer.Option("--run", help="A run's id.")] = None,
    metric: Annotated[
        str | None, typer.Option(help="One that stands beside others, by its name.")
    ] = None,
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Print the scores of a pipeline's latest completed run."""
    from curvote.run.history import completed
    from curvote.run.summary import summary

    place = _project(project)
    record = completed(place, pipeline, run_id)
    rows = summary(place, record)
    if not rows:
        raise UserError(
            f"{pipeline} is in production: no true error is known. `curvote report"
            f" {pipeline}` shows what is."
        )
    if as_json:
        say_json(rows)
        return
    from curvote.flows.output.tables import print_scores

    print_scores(record, rows, metric)


@app.command()
def report(pipeline: Pipeline, project: ProjectOption = None) -> None:
    """Draw the report of the latest completed run and print its path."""
    place = _project(project)
    environment.prepare(place.root)
    from curvote.reporting.report import report as draw
    from curvote.run.history import completed

    typer.echo(str(draw(place, completed(place, pipeline))))


@app.command()
def gc(
    dry_run: Annotated[bool, typer.Option(help="Only say what would go.")] = False,
    keep: Annotated[int, typer.Option(min=1, help="Runs to keep a pipeline.")] = 1,
    older: Annotated[
        str | None, typer.Option(help="Also records, pages, logs: 36h, 90d, 12w.")
    ] = None,
    project: ProjectOption = None,
) -> None:
    """Delete artifacts that no pipeline's latest completed run uses, and what is old.

    What is old says --older, or retention in pipelines.yaml; what a latest run needs, a
    release, a ledger and an intake always stay.
    """
    from curvote.flows.retention import collect, limits_of

    place = _project(project)
    limits = limits_of(place, older)
    verb = "would free" if dry_run else "freed"
    for pile in collect(place, keep=keep, limits=limits, dry_run=dry_run):
        size, count = pile.bytes / 2**20, len(pile.paths)
        typer.echo(f"{verb} {size:.1f} MiB: {count} {pile.kind}")


for command in (
    cli_status.status,
    cli_status.health,
    cli_pages.serve,
    cli_pages.ui,
    cli_audit.audit,
    cli_predict.predict,
    cli_reproduce.reproduce,
    doctor.doctor,
    utility,
):
    app.command()(command)
for name, own in commands():
    app.command(name)(own)


def _project(start: Path | None) -> Project:
    from curvote.run.store.moving import move_raw

    found = find_project(start, starter=True)
    if found.starter:
        lines.say("no pipelines.yaml here: the pipelines are those that curvote brings")
    move_raw(found)
    return found


def _run(project: Path | None, **given: Any) -> None:
    """Check first, then start the server and import Prefect while it comes up."""
    with environment.imports():
        place = _checked(project, given)
        from curvote.flows.running import run_chain
    run_chain(place, given)


def _checked(project: Path | None, given: dict[str, Any]) -> Project:
    from curvote.reproduce.lookup import file_of
    from curvote.run.config.file import PipelinesFile
    from curvote.run.config.source import own_file
    from curvote.run.engines import engine_of

    place = _project(project)
    environment.prepare(place.root)
    file = file_of(place, given["pipeline"])
    configured = file.configured(
        given["pipeline"],
        given.get("overrides", ()),
        replicates=given.get("replicates"),
        seed=given.get("seed"),
    )
    with file.placing(given["pipeline"]):
        own_file(place, configured.pipeline)
    runtime = PipelinesFile(place).runtime()
    engine_of(place, runtime, given.get("engine"), given.get("workers"))
    return place


def main() -> None:
    """Run the command line: exit 0 done, 1 failed, 2 user error, 3 a run is blocked."""
    with told(*sys.argv[1:2]):
        app()
