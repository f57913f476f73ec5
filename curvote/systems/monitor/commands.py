"""Command `curvote monitor`: what a watch would cost and tell, and what it has told."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curvote.base.errors import UserError
from curvote.chain.commands import align_columns

if TYPE_CHECKING:
    from curvote.pipeline.run.results import RunView


COMMANDS = {"monitor": "curvote.systems.monitor.commands:monitor"}


class Action(StrEnum):
    """What is wanted of a watch."""

    PLAN = "plan"
    SHOW = "show"


def monitor(
    action: Annotated[Action, typer.Argument(help="What to do.")],
    pipeline: Annotated[str, typer.Argument(help="A pipeline of protocol monitor.")],
    *,
    epsilon: Annotated[
        list[float], typer.Option("--epsilon", help="plan: levels to compare.")
    ] = [],  # noqa: B006 - typer copies the default
    within: Annotated[
        float, typer.Option(min=1, help="plan: windows in which a drop is to be found.")
    ] = 4,
    drop: Annotated[float, typer.Option(help="plan: the drop, a share.")] = 0.05,
    answering: Annotated[
        float, typer.Option(help="plan: the share of those asked who answer.")
    ] = 1.0,
    project: Annotated[
        Path | None, typer.Option("--project", help="Folder with pipelines.yaml.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document.")
    ] = False,
) -> None:
    """Plan a watch over a model before anybody is asked, or show what it has told."""
    from curvote.pipeline.config.file import PipelinesFile
    from curvote.pipeline.config.project import find_project

    place = find_project(project)
    settings = PipelinesFile(place).configure_pipeline(pipeline).pipeline
    if not hasattr(settings, "monitor"):
        raise UserError(f"{pipeline} is of protocol {settings.protocol}, not monitor.")
    if action is Action.PLAN:
        from curvote.systems.monitor.plan import plan_document

        if not (0 < drop < 1 and 0 < answering <= 1):
            raise UserError("--drop and --answering are shares, above 0.")
        levels = [*epsilon] or [*settings.epsilon]
        document = plan_document(settings.monitor, levels, within, drop, answering)
        lines = plan_lines(document)
    else:
        document = watch_document(place, pipeline)
        lines = watch_lines(document)
    typer.echo(json.dumps(document, indent=1) if as_json else "\n".join(lines))


def plan_lines(document: dict[str, Any]) -> list[str]:
    """Return a plan as text."""
    question, usual = document["question"], document["usual"]
    title = (
        f"Question {question}, in {document['rounds']} windows of {document['window']};"
        f" usual {usual:g}, alarm beyond {document['bound']:g}, a drop of"
        f" {document['drop']:g} behind four windows:"
    )
    counts = ("people_needed", "panels", "people_in_all")
    head = (
        *("epsilon", "answers", "one window", "all", "windows to alarm", "9 of 10"),
        *(f"people for {document['within']:g}", "panels", "people in all"),
    )
    rows = [
        [
            "none (trusted)" if row["epsilon"] is None else f"{row['epsilon']:g}",
            f"{row['answers']:,}",
            f"± {row['interval_window']:.3f}",
            f"± {row['interval_all']:.3f}",
            *(_text(row[name], ".1f") for name in ("windows_to_alarm", "windows_late")),
            *(_text(row[name], ",d") for name in counts),
        ]
        for row in document["rows"]
    ]
    note = (
        f"a false alarm ever: {100 * document['error']:g} % at most; times are means of"
        " 1,000 simulated streams, and never where the drop is within the margin"
    )
    encoder = f"encoder: {document['encoder']}"
    return [title, "", *align_columns([list(head), *rows]), "", encoder, note]


def _text(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"


def watch_document(project: Any, pipeline: str) -> dict[str, Any]:
    """Return what the latest run of a watch has told, as plain values."""
    from curvote.pipeline.run.results import final_views
    from curvote.pipeline.store.records import load_records

    for record in reversed(load_records(project, pipeline, "completed")):
        for view in final_views(project, record):
            if view.holds("watch"):
                return {"pipeline": pipeline, "run": record.id, **_view_document(view)}
    raise UserError(
        f"{pipeline} has told nothing yet: `curvote run {pipeline}` asks, and counts"
        " what came."
    )


def _view_document(view: RunView) -> dict[str, Any]:
    tables = {
        name: view.read("watch", f"watch_{name}")
        for name in ("figures", "windows", "looks", "alarms")
    }
    rows = {
        name: json.loads(
            table.drop(columns="replicate", errors="ignore").to_json(orient="records")
        )
        for name, table in tables.items()
    }
    task = view.metadata("watch")["task"]
    answered = int(tables["looks"]["n"].iloc[-1])
    return {"question": task["question"], "answers": answered, **rows}


def watch_lines(document: dict[str, Any]) -> list[str]:
    """Return what a watch has told as text."""
    alarms = [
        f"ALARM: {row['alarm']}, at {row['n']:,} answers" for row in document["alarms"]
    ]
    head = ["figure", "group", "value", "low", "high", "1 % of liars"]
    rows = [
        [
            row["name"],
            row["member"] or "",
            *(
                "-" if row[name] is None else f"{row[name]:.3f}"
                for name in ("value", "low", "high", "liars")
            ),
        ]
        for row in document["figures"]
    ]
    windows = [["window", "answers", "value", "low", "high"]]
    windows += [
        [
            f"{row['window']}",
            f"{row['n']:,}",
            *(f"{row[name]:.3f}" for name in ("value", "low", "high")),
        ]
        for row in document["windows"]
    ]
    title = (
        f"{document['pipeline']}: {document['answers']:,} answers to the question"
        f" {document['question']}"
    )
    return [
        title,
        *(alarms or ["no alarm"]),
        "",
        *align_columns([head, *rows]),
        "",
        *align_columns(windows),
    ]
