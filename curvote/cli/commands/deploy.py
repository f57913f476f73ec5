"""The command that hands a project's schedules to a Prefect server of one's own."""

from typing import Annotated

import typer

from curvote.base.errors import Problem, UserError
from curvote.cli import terminal
from curvote.pipeline.config.project import find_project


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
    from curvote.flows.deployments import Deployments
    from curvote.flows.lines import write_line

    deployments = Deployments(find_project(project), pool, folder)
    url = None
    if register and not dry_run:
        if pool is None:
            raise UserError("--register needs --pool NAME: whose workers run them?")
        url = deployments.register()
        typer.echo(f"registered at {url}: {', '.join(deployments.wanted())}")
    else:
        text, changes = deployments.merge()
        if check and changes:
            lines = [*changes, "`curvote deploy` writes it anew"]
            raise UserError.several(Problem(f"prefect.yaml: {c}.") for c in lines)
        if changes and not dry_run:
            deployments.path.write_text(text, encoding="utf-8")
        done = "written" if changes else "is what pipelines.yaml says"
        typer.echo(text if dry_run else f"prefect.yaml: {done}\n", nl=False)
    if names := ", ".join(deployments.refused(url)):
        write_line(
            f"{names}: in production. A server that is not curvote's own may not start"
            " them until pipelines.yaml names its address: `runtime: {prefect: {api:"
            f" {url or 'URL'}}}}}`.",
            "warning",
        )
