"""Runs of a project as lists show them: their state, and what changed before each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from curvote.chain.axis import Cell
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_one_line, flat_items
from curvote.pipeline.store import records
from curvote.pipeline.store.artifacts import stored_artifact
from curvote.pipeline.store.records import RunRecord

# What these say changes no number of a run.
NEUTRAL_KEYS: Final = ("description", "schedule")
_MAX_REASONS: Final = 6
INPUT_PREFIX: Final = "input "


@dataclass(frozen=True)
class SettingChange:
    """A dotted key of the configuration with its values in both runs."""

    path: str
    a: Any
    b: Any

    def __str__(self) -> str:
        return f"{self.path} {_format_setting(self.a)} -> {_format_setting(self.b)}"


def changed_settings(first: RunRecord, second: RunRecord) -> list[SettingChange]:
    """Return each setting that differs; null and absent are equal."""
    before, after = (
        {
            ".".join(path): value
            for path, value in flat_items(run.config)
            if path[0] not in NEUTRAL_KEYS and value is not None
        }
        for run in (first, second)
    )
    paths = [*before, *(path for path in after if path not in before)]
    changes = (SettingChange(path, before.get(path), after.get(path)) for path in paths)
    return [change for change in changes if change.a != change.b]


def describe_change(earlier: RunRecord | None, later: RunRecord) -> str:
    """Return the difference between a run and the one before, in words.

    Of two runs that were told the same the reasons of the plan are said, if it had any.
    """
    if earlier is None:
        return "the first"
    if not (earlier.config and later.config):
        which = "this one" if earlier.config else "the one before"
        return f"{which} could not be planned"
    descriptions = [str(change) for change in changed_settings(earlier, later)]
    if not descriptions and step_keys(earlier) != step_keys(later):
        anew = (s["reason"] for s in later.steps if s["action"] == "run")
        every = dict.fromkeys(anew)
        descriptions = [r for r in every if not r.startswith(INPUT_PREFIX)]
    left_out = len(descriptions) - _MAX_REASONS
    more = [f"and {left_out} more"] if left_out > 0 else []
    return ", ".join(descriptions[:_MAX_REASONS] + more) or "nothing"


def step_keys(record: RunRecord) -> dict[tuple[str, Cell], str]:
    """Return the key of each stage and cell of a run."""
    return {(s["stage"], Cell.from_mapping(s["cell"])): s["key"] for s in record.steps}


def _format_setting(value: Any) -> str:
    return "nothing" if value is None else as_one_line(value)


# Says whether the process that an owner names is there.
IsAlive = Callable[[str], bool]


def project_status(
    project: Project, *, content: bool, is_alive: IsAlive = bool
) -> list[dict[str, Any]]:
    """Return a row for each pipeline: latest run, artifacts, altered files.

    First come the pipelines of the project's file, group after group, then others that
    ran here. Files are checked by size and date, or with ``content`` by SHA-256.
    Those on a schedule have the start of their last success beside the last try.
    """
    from curvote.pipeline.config import file  # a list of runs reads no pipeline

    overviews = {
        about["name"]: about
        for about in file.list_pipelines(file.PipelinesFile(project))
    }
    for name in records.pipeline_names(project):
        overviews.setdefault(name, {"group": file.ELSEWHERE, "description": ""})
    return [
        {"pipeline": name, "group": group, "description": about["description"]}
        | _run_status(project, name, content, is_alive, group == file.SCHEDULED)
        for name, about in overviews.items()
        for group in [about["group"]]
    ]


def run_state(project: Project, record: RunRecord, is_alive: IsAlive) -> str:
    """Return the state of a run; a running one without its process was killed."""
    if record.status != "running":
        return record.status
    there = records.is_running(project, record.id, record.owner, is_alive)
    return "running" if there else "killed"


def _run_status(
    project: Project, name: str, content: bool, is_alive: IsAlive, scheduled: bool
) -> dict[str, Any]:
    record = records.latest_run(project, name)
    steps = record.steps if record else ()
    places = dict.fromkeys((step["stage"], step["key"]) for step in steps)
    stored = (stored_artifact(project, *place) for place in places)
    problems = [(f"{a.stage}/{a.key}", a.problem(content=content)) for a in stored]
    altered = [f"{place}: {p}" for place, p in problems if p and p != "missing"]
    sound = sum(problem is None for _, problem in problems)
    counted = f"{sound} of {len(problems)} sound" if problems else ""
    success = ""
    if scheduled:
        done = records.load_records(project, name, "completed", 1)
        success = (done[-1].finished or done[-1].started) if done else "none"
    return {
        "run": record.id if record else "",
        "status": run_state(project, record, is_alive) if record else "never run",
        "why": record.why if record else "",
        "started": record.started if record else "",
        "last_success": success,
        "artifacts": "; ".join([counted, *altered]),
        "altered": altered,
    }
