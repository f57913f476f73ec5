"""Command line ``curvote``; heavy imports stand inside commands, for a fast start."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from curvote.base.errors import InternalError, UserError
from curvote.base.lazy import install_hint
from curvote.chain.commands import system_commands
from curvote.cli.commands import audit as cli_audit
from curvote.cli.commands import client as cli_client
from curvote.cli.commands import data as cli_data
from curvote.cli.commands import intake as cli_intake
from curvote.cli.commands import ledger as cli_ledger
from curvote.cli.commands import predict as cli_predict
from curvote.cli.commands import project as cli_check
from curvote.cli.commands import project as cli_gc
from curvote.cli.commands import project as cli_init
from curvote.cli.commands import project as cli_listing
from curvote.cli.commands import reproduce as cli_reproduce
from curvote.cli.commands import runs as cli_results
from curvote.cli.commands import runs as cli_runs
from curvote.cli.commands import serve as cli_pages
from curvote.cli.commands import status
from curvote.cli.commands import status as cli_status
from curvote.cli.terminal import (
    EngineName,
    Json,
    LogFormat,
    MetricsPort,
    Pipeline,
    ProjectOption,
    Replicates,
    Seed,
    Why,
    Workers,
    open_project,
    print_json,
    set_up_output,
    top,
)
from curvote.cli.utility import utility
from curvote.flows import environment, lines
from curvote.pipeline.config.project import Project, find_project

# The extra with which a command goes; one that is not here reads pipelines.yaml.
_DEFAULT_EXTRA = "pipeline"
_COMMAND_EXTRAS = {
    "client": "laws",
    **dict.fromkeys(("advise", "audit", "data", "utility"), "method"),
    "ui": "tracking",
}


@contextmanager
def report_errors(command: str = "") -> Iterator[None]:
    """Print errors without a traceback: exit 1 for a bug, 2 for a user error.

    What an extra of curvote would bring is the user's to install: the one with which
    ``command``, the first word after curvote, goes.
    """
    try:
        yield
    except UserError as error:
        for problem in error.problems:
            lines.write_line(f"curvote: {problem.message}", "error")
        raise SystemExit(2) from None
    except ModuleNotFoundError as error:
        words = install_hint(error, _COMMAND_EXTRAS.get(command, _DEFAULT_EXTRA))
        if words is None:
            raise
        lines.write_line(f"curvote: {words}", "error")
        raise SystemExit(2) from None
    except InternalError as error:
        lines.write_line(f"curvote: {error}. This is a bug in curvote.", "error")
        raise SystemExit(1) from None


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
Only = Annotated[str | None, typer.Option(help="Recompute just this stage.")]
From = Annotated[str | None, typer.Option("--from", help="Recompute from this stage.")]
Force = Annotated[list[str], typer.Option(help="Recompute this stage; must agree.")]
NewRelease = Annotated[
    bool, typer.Option("--new-release", help="Production: release again; spends again.")
]
NewPeople = Annotated[bool, typer.Option("--new-people", help="They are others.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before a release.")]
Block = Annotated[int | None, typer.Option(min=1, help="Replicates done at once.")]


@app.command()
def demo(
    project: ProjectOption = None, engine: EngineName = None, workers: Workers = None
) -> None:
    """Run the small simulated pipeline, print its table and where its report is."""
    _check_and_run(project, pipeline="demo", engine=engine, workers=workers)


@app.command()
def run(
    pipeline: Pipeline,
    only: Only = None,
    start: From = None,
    force: Force = [],  # noqa: B006 - typer copies the default
    overrides: Set = [],  # noqa: B006 - typer copies the default
    new_release: NewRelease = False,
    new_people: NewPeople = False,
    yes: Yes = False,
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
    set_up_output(find_project(project, starter=True), log_format, metrics_port)
    _check_and_run(
        project,
        pipeline=pipeline,
        only=only,
        start=start,
        force=force,
        overrides=overrides,
        new_release=new_release,
        new_people=new_people,
        ask=sys.stdin.isatty() and not yes,
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
    why: Why = False,
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Say what a run would do, stage by stage, and why; runs nothing."""
    from curvote.papers.registry import file_of
    from curvote.pipeline.run.planner import Selection, make_plan

    place = _open_project(project)
    file = file_of(place, pipeline)
    configured = file.configure_pipeline(
        pipeline, overrides, replicates=replicates, seed=seed
    )
    with file.errors_located(pipeline):
        plan_made = make_plan(place, configured, Selection(only, start, tuple(force)))
    rows = [step.row() for step in plan_made.steps]
    if as_json:
        print_json(rows)
        return
    from curvote.cli.tables import print_plan
    from curvote.flows.display import print_choices

    print_choices(plan_made)
    print_plan(rows, why=why)


app.command("list")(cli_listing.list_)
for command in (
    cli_init.init,
    cli_check.check,
    cli_results.scores,
    cli_results.report,
    cli_runs.runs,
    cli_runs.diff,
    cli_runs.show,
    cli_status.status,
    cli_status.health,
    cli_pages.serve,
    cli_pages.ui,
    cli_audit.audit,
    cli_predict.predict,
    cli_reproduce.reproduce,
    cli_gc.gc,
    status.doctor,
    utility,
):
    app.command()(command)
for name, command_function in system_commands():
    app.command(name)(command_function)


def _open_project(start: Path | None) -> Project:
    from curvote.pipeline.store.artifacts import migrate_raw_artifacts

    project = open_project(start, starter=True)
    migrate_raw_artifacts(project)
    return project


def _check_and_run(project: Path | None, **options: Any) -> None:
    """Check the options, then run while the server starts."""
    with environment.fast_imports():
        place = _check_run(project, options)
        from curvote.cli.run import run_and_print
    run_and_print(place, options)


def _check_run(project: Path | None, options: dict[str, Any]) -> Project:
    from curvote.papers.registry import file_of
    from curvote.pipeline.config.file import PipelinesFile
    from curvote.pipeline.config.source import user_file_path
    from curvote.pipeline.run.engines import choose_engine

    place = _open_project(project)
    environment.prepare_environment(place.root)
    file = file_of(place, options["pipeline"])
    configured = file.configure_pipeline(
        options["pipeline"],
        options.get("overrides", ()),
        replicates=options.get("replicates"),
        seed=options.get("seed"),
    )
    with file.errors_located(options["pipeline"]):
        user_file_path(place, configured.pipeline)
    runtime = PipelinesFile(place).runtime()
    choose_engine(place, runtime, options.get("engine"), options.get("workers"))
    return place


def main() -> None:
    """Run the command line: exit 0 done, 1 failed, 2 user error, 3 a run is blocked."""
    with report_errors(*sys.argv[1:2]):
        app()
