"""The command `curvote rerun`: a study made again from what was kept of it.

Its record tells, or its run in MLflow; what pipelines.yaml says today is only compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from curvote.base.errors import UserError
from curvote.cli import terminal
from curvote.cli.commands.runs import RunName

if TYPE_CHECKING:
    from curvote.pipeline.config.file import ConfiguredPipeline
    from curvote.pipeline.config.project import Project
    from curvote.pipeline.plan.step import Step
    from curvote.pipeline.store.records import RunRecord


def rerun(
    run: RunName,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what differs; run nothing.")
    ] = False,
    engine: terminal.EngineName = None,
    workers: terminal.Workers = None,
    project: terminal.ProjectOption = None,
) -> None:
    """Make a run again as it was configured, after saying what differs today."""
    from curvote.pipeline.run.planner import make_plan
    from curvote.pipeline.run.run_object import find_run, require_plan

    place = terminal.open_store(project)
    try:
        record = find_run(place, run)
    except UserError:
        from curvote.flows.tracking.log import find_logged_run

        logged_run = find_logged_run(place, run)
        if logged_run is None:
            raise
        record = logged_run
    require_plan(record)
    name = record.pipeline
    if record.config.get("mode") == "production":
        raise UserError(
            f"run {record.id} is a release: its noise was drawn once, and drawing it"
            f" again would spend again. `curvote run {name}` reuses what was released,"
            f" `curvote run {name} --new-release` asks for more and says what it costs."
        )
    configured, changes = _configure_as(place, record)
    steps = make_plan(place, configured).steps
    changes += _key_changes(place, record, steps)
    typer.echo(f"run {record.id} of {name}, {record.started}; today")
    for line in changes or ["nothing differs: settings, code, libraries and data"]:
        typer.echo(f"  {line}")
    stored = sum(step.action == "reuse" for step in steps)
    typer.echo(f"  {stored} of {len(steps)} steps are stored and taken over")
    if not dry_run:
        from curvote.cli.run import run_and_print

        options = {"overrides": list(configured.overrides), "engine": engine}
        run_and_print(place, {"pipeline": name, "workers": workers, **options})
        typer.echo(f"`curvote diff {record.id} {name}` compares the two")


def _configure_as(
    project: Project, record: RunRecord
) -> tuple[ConfiguredPipeline, list[str]]:
    """Return the pipeline as it ran, and what pipelines.yaml says otherwise today."""
    from curvote.papers.registry import file_of
    from curvote.pipeline.config.yaml_document import as_one_line, as_yaml
    from curvote.pipeline.run.history import NEUTRAL_KEYS, changed_settings

    name = record.pipeline
    settings = {key: value for key, value in record.config.items() if value is not None}
    try:
        file = file_of(project, name)
    except UserError as error:
        text = as_yaml({name: settings}, brief=True)
        message = f"{error} To run it again, write there below pipelines:\n{text}"
        raise UserError(message) from None
    # As little as possible is set: nothing more, what differs, or all there is.
    defaults = file.values.get("defaults") or {}
    every = {*file.values["pipelines"][name], *defaults, *settings} - {*NEUTRAL_KEYS}
    keys: set[str] = set()
    differing: list[str] = []
    while True:
        more = (f"{key}={as_one_line(settings.get(key))}" for key in sorted(keys))
        try:
            configured = file.configure_pipeline(name, [*record.overrides, *more])
        except UserError as error:
            if keys == every:
                raise
            differing, keys = differing or str(error).splitlines(), every
            continue
        now = replace(record, config=configured.values())
        changes = changed_settings(record, now)
        differing = differing or [str(change) for change in changes]
        if not changes or keys == every:
            lines = [f"pipelines.yaml: {line}; it runs as before" for line in differing]
            return configured, lines + [f"not known then: {line}" for line in changes]
        keys = every if keys else {change.path.partition(".")[0] for change in changes}


def _key_changes(
    project: Project, record: RunRecord, steps: Iterable[Step]
) -> Iterator[str]:
    """Yield why stages are computed otherwise today, each reason with its stages."""
    from curvote.pipeline.plan.step import differences
    from curvote.pipeline.run.history import INPUT_PREFIX, step_keys
    from curvote.pipeline.store.artifacts import artifact

    before = step_keys(record)
    stages: dict[str, list[str]] = {}
    for step in steps:
        key = before.get((step.stage.name, step.cell))
        if key == step.key:
            continue
        reasons = ["that run had no such step"]
        if key is not None:
            old = artifact(project, step.stage.name, key)
            reasons = ["unknown: what that run stored is gone"]
            if not old.problem(content=False):
                reasons = [*differences(old.manifest["components"], step.components)]
        for reason in reasons:
            if not reason.startswith(INPUT_PREFIX):
                stages.setdefault(reason, []).append(step.stage.name)
    for reason, names in stages.items():
        yield f"{reason} ({', '.join(dict.fromkeys(names))})"
