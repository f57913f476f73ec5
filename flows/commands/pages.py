"""The commands that stay until Ctrl-C: `curvote serve` and `curvote ui`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from curvote.errors import UserError
from curvote.flows import environment
from curvote.flows.output.terminal import (
    Json,
    LogFormat,
    MetricsPort,
    ProjectOption,
    say_json,
)
from curvote.run.project import find_project

_FIRINGS = 5


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
    from curvote.flows.serving.watched_file import read_schedules
    from curvote.run.config.file import PipelinesFile

    place = find_project(project)
    if check:
        schedules = PipelinesFile(place).schedules()
        environment.prepare(place.root)
        _tell_next(schedules, as_json)
        return
    schedules, faulty = read_schedules(place)
    environment.prepare(place.root)
    if as_json:
        raise UserError("--json goes with --check; the log is JSON by --log-format.")
    from curvote.flows.output import lines
    from curvote.flows.serving.serve import serve as serve_schedules

    lines.use(log_format)
    about = place, schedules
    serve_schedules(*about, port=port, metrics_port=metrics_port, faulty=faulty)


def _tell_next(schedules: dict[str, dict[str, Any]], as_json: bool) -> None:
    from curvote.flows.serving.firing import check, firings, in_words

    check(schedules)
    now = datetime.now(UTC)
    rows: list[dict[str, Any]] = [
        {
            "pipeline": name,
            "schedule": in_words(each),
            "catch_up": each.get("catch_up"),
            "next": [
                date.isoformat() for date in firings(each, after=now, count=_FIRINGS)
            ],
        }
        for name, each in schedules.items()
    ]
    if as_json:
        say_json(rows)
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
    environment.prepare(place.root)
    from curvote.flows.tracking.ui import open_ui

    open_ui(place, port)
