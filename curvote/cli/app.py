"""Command line ``curvote``; heavy imports stand inside commands, for a fast start."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from curvote.base.errors import InternalError, UserError
from curvote.base.lazy import install_hint
from curvote.chain.commands import system_commands
from curvote.cli import terminal
from curvote.cli.commands import (
    audit,
    client,
    data,
    explain,
    falsify,
    intake,
    ledger,
    predict,
    runs,
)
from curvote.cli.commands import project as project_commands
from curvote.cli.commands.deploy import deploy
from curvote.cli.commands.rerun import rerun
from curvote.cli.utility import utility
from curvote.flows import environment, lines
from curvote.pipeline.config.project import find_project

# The extra with which a command goes; one that is not here reads pipelines.yaml.
_DEFAULT_EXTRA = "pipeline"
_COMMAND_EXTRAS = {
    **dict.fromkeys(("client", "explain"), "laws"),
    **dict.fromkeys(("advise", "audit", "data", "falsify", "utility"), "method"),
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
    epilog="What a word, a setting or a file is: `curvote explain WORD`, or FILE. All"
    " words stand in docs/glossary.md.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.callback()(terminal.top)
for part in (data, ledger, client, intake):
    app.add_typer(part.app)

Only = Annotated[
    list[str], typer.Option(help="Run this stage again, or these, and no other.")
]
From = Annotated[str | None, typer.Option("--from", help="Run from this stage on.")]
Force = Annotated[list[str], typer.Option(help="Run it again; must give the same.")]


@app.command()
def demo(
    project: terminal.ProjectOption = None,
    engine: terminal.EngineName = None,
    workers: terminal.Workers = None,
) -> None:
    """Run a small example in seconds; print its table and where its report is."""
    _check_and_run(project, pipeline="demo", engine=engine, workers=workers)


@app.command()
def run(
    pipeline: terminal.Pipeline,
    only: Only = [],  # noqa: B006 - typer copies the default
    start: From = None,
    force: Force = [],  # noqa: B006 - typer copies the default
    overrides: terminal.Overrides = [],  # noqa: B006 - typer copies the default
    new_release: Annotated[
        bool, typer.Option("--new-release", help="Ask all again: spends again.")
    ] = False,
    new_people: Annotated[
        bool,
        typer.Option("--new-people", help="Records that are new are other people."),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Release without a question.")
    ] = False,
    replicates: terminal.Replicates = None,
    seed: terminal.Seed = None,
    engine: terminal.EngineName = None,
    workers: terminal.Workers = None,
    block: Annotated[
        int | None,
        typer.Option(min=1, help="Repetitions done at once (fewer: less memory)."),
    ] = None,
    log_format: terminal.LogFormat = "text",
    metrics_port: terminal.MetricsPort = None,
    project: terminal.ProjectOption = None,
) -> None:
    """Run a pipeline; stages that need no new run are reused."""
    terminal.set_up_output(
        find_project(project, starter=True), log_format, metrics_port
    )
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
    pipeline: terminal.Pipeline,
    only: Only = [],  # noqa: B006 - typer copies the default
    start: From = None,
    force: Force = [],  # noqa: B006 - typer copies the default
    overrides: terminal.Overrides = [],  # noqa: B006 - typer copies the default
    replicates: terminal.Replicates = None,
    seed: terminal.Seed = None,
    why: Annotated[bool, typer.Option("--why", help="Print all reasons.")] = False,
    as_json: terminal.Json = False,
    project: terminal.ProjectOption = None,
) -> None:
    """Say what a run would do, stage by stage, and why; run nothing."""
    from curvote.base.object_store import is_remote
    from curvote.papers.registry import file_of
    from curvote.pipeline.run.planner import Selection, make_plan
    from curvote.pipeline.store.locations import server_store

    place = terminal.open_store(project, starter=True)
    file = file_of(place, pipeline)
    configured = file.configure_pipeline(
        pipeline, overrides, replicates=replicates, seed=seed
    )
    with file.errors_located(pipeline):
        plan_made = make_plan(
            place, configured, Selection(tuple(only), start, tuple(force))
        )
    rows = [step.row() for step in plan_made.steps]
    if as_json:
        terminal.print_json(rows)
        return
    from curvote.flows.display import print_choices

    print_choices(plan_made)
    terminal.print_plan(rows, why=why)
    if is_remote(server_store(place)):  # else tables and workers are in one folder
        from curvote.pipeline.config.file import PipelinesFile
        from curvote.pipeline.run.engines import choose_engine

        engine = choose_engine(place, PipelinesFile(place).runtime(), None, None)
        for line in engine.describe_places(plan_made.steps):
            lines.write_line(line)


app.command("list")(project_commands.list_)
for command in (
    project_commands.init,
    project_commands.check,
    runs.scores,
    runs.report,
    runs.certify,
    runs.rehearse,
    runs.runs,
    runs.diff,
    rerun,
    runs.show,
    project_commands.status,
    project_commands.health,
    runs.serve,
    deploy,
    runs.ui,
    audit.audit,
    falsify.falsify,
    predict.predict,
    runs.reproduce,
    project_commands.gc,
    project_commands.doctor,
    explain.explain,
    utility,
):
    app.command()(command)
for name, command_function in system_commands():
    app.command(name)(command_function)


def _check_and_run(project: Path | None, **options: Any) -> None:
    """Check the options, then run while the server starts."""
    with environment.fast_imports():
        from curvote.papers.registry import file_of
        from curvote.pipeline.config.file import PipelinesFile
        from curvote.pipeline.config.source import user_file_path
        from curvote.pipeline.run.engines import choose_engine

        place = terminal.open_store(project, starter=True)
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
        from curvote.cli.run import run_and_print
    run_and_print(place, options)


def main() -> None:
    """Run the command line: exit 0 done, 1 failed, 2 user error, 3 a run is blocked."""
    with report_errors(*sys.argv[1:2]):
        app()
