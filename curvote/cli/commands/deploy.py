"""The command that hands a project's schedules to a Prefect server of one's own."""

from pathlib import Path
from typing import Annotated

import typer

from curvote.base.errors import Problem, UserError
from curvote.cli import terminal
from curvote.pipeline.config.project import find_project
from curvote.pipeline.config.yaml_document import as_yaml


def deploy(
    pool: Annotated[
        str | None, typer.Option(help="The work pool whose workers run them.")
    ] = None,
    folder: Annotated[
        str | None, typer.Option(help="Where its workers find the project.")
    ] = None,
    register: Annotated[
        bool, typer.Option("--register", help="Register them on Prefect's server.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only compare with pipelines.yaml.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be written.")
    ] = False,
    project: terminal.ProjectOption = None,
) -> None:
    """Write prefect.yaml for the scheduled pipelines, or register them on a server.

    The server is that of PREFECT_API_URL: see docs/prefect.md.
    """
    from curvote.flows.deployments import FILE, Deployments
    from curvote.flows.lines import write_line

    place = find_project(project)
    deployments = Deployments(place, pool, folder)
    url = None
    if register and not dry_run:
        if pool is None:
            raise UserError("--register needs --pool NAME: whose workers run them?")
        url = deployments.register()
        for name in deployments.wanted():
            typer.echo(f"registered: curvote/{name} at {url}")
    elif register:
        typer.echo(as_yaml([*deployments.wanted().values()], brief=True), nl=False)
    else:
        text, changes = deployments.merge()
        if dry_run:
            typer.echo(text, nl=False)
        elif check and changes:
            raise UserError.several(_problems(deployments.path, changes))
        elif changes:
            deployments.path.write_text(text, encoding="utf-8")
        if not dry_run:
            done = "is what pipelines.yaml says" if not changes else "written"
            typer.echo(f"{terminal.relative_to_here(place.root / FILE)}: {done}")
    if names := deployments.unallowed(url):
        write_line(
            f"{', '.join(names)}: in production. A server that is not curvote's own is"
            " refused such runs until pipelines.yaml names its address:"
            f" `runtime: {{prefect: {{api: {url or 'URL'}}}}}`.",
            "warning",
        )


def _problems(path: Path, changes: list[str]) -> list[Problem]:
    last = Problem("`curvote deploy` writes it anew.")
    return [*(Problem(f"{path.name}: {change}.") for change in changes), last]
