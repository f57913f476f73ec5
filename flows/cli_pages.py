"""The commands that show pages on this machine: `curvote serve` and `curvote ui`."""

from __future__ import annotations

from typing import Annotated

import typer

from curvote.run.project import find_project
from flows import environment
from flows.terminal import ProjectOption


def serve(
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 4200,
    project: ProjectOption = None,
) -> None:
    """Run the pipelines that carry a schedule, until Ctrl-C."""
    from curvote.run.config.file import PipelinesFile

    place = find_project(project)
    schedules = PipelinesFile(place).schedules()
    environment.prepare(place.root)
    from flows.serving import serve as serve_schedules

    serve_schedules(place, schedules, port=port)


def ui(
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 5000,
    project: ProjectOption = None,
) -> None:
    """Open MLflow's pages, where runs are compared, until Ctrl-C."""
    place = find_project(project)
    environment.prepare(place.root)
    from flows.ui import open_ui

    open_ui(place, port)
