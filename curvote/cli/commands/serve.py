"""The commands that run until Ctrl-C: `curvote serve` and `curvote ui`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from curvote.base.errors import UserError
from curvote.cli.terminal import Json, LogFormat, MetricsPort, ProjectOption, print_json
from curvote.flows import environment
from curvote.pipeline.config.project import find_project

_SHOWN_FIRINGS = 5


def serve(
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 4200,
    check: Annotated[
        bool, typer.Option("--check", help="Only say when pipelines run next.")
    ] = False,
    as_json: Json = False,
    metrics_port: MetricsPort = None,
    log_format: LogFormat = "text",
    project: ProjectOption = None,
) -> None:
    """Run the pipelines that carry a schedule, until Ctrl-C."""
    from curvote.flows.serving.schedules import read_schedules
    from curvote.pipeline.config.file import PipelinesFile

    place = find_project(project)
    if check:
        schedules = PipelinesFile(place).schedules()
        environment.prepare_environment(place.root)
        _print_next_firings(schedules, as_json)
        return
    schedules, faulty = read_schedules(place)
    environment.prepare_environment(place.root)
    if as_json:
        raise UserError("--json goes with --check; the log is JSON by --log-format.")
    from curvote.flows import lines
    from curvote.flows.serving.service import serve_schedules

    lines.set_format(log_format)
    about = place, schedules
    serve_schedules(*about, port=port, metrics_port=metrics_port, faulty=faulty)


def _print_next_firings(schedules: dict[str, dict[str, Any]], as_json: bool) -> None:
    from curvote.flows.serving.schedules import (
        check_schedules,
        describe_schedule,
        firing_times,
    )

    check_schedules(schedules)
    now = datetime.now(UTC)
    rows: list[dict[str, Any]] = [
        {
            "pipeline": name,
            "schedule": describe_schedule(schedule),
            "catch_up": schedule.get("catch_up"),
            "next": [
                date.isoformat()
                for date in firing_times(schedule, after=now, count=_SHOWN_FIRINGS)
            ],
        }
        for name, schedule in schedules.items()
    ]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        typer.echo("\n  ".join([f"{row['pipeline']}: {row['schedule']}", *row["next"]]))
    if not rows:
        typer.echo("No pipeline has a schedule.")


def ui(
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 5000,
    project: ProjectOption = None,
) -> None:
    """Open MLflow's pages, where runs are compared, until Ctrl-C."""
    place = find_project(project)
    environment.prepare_environment(place.root)
    from curvote.flows.tracking.ui import serve_ui

    serve_ui(place, port)
