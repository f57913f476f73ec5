"""Health of `curvote serve`: its heartbeat file, and checks of pipelines."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from curvote.flows.environment import is_alive
from curvote.flows.machine import Finding
from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records

# Older, and the process hangs although it is there.
STALE_SECONDS = 60.0


@dataclass(frozen=True)
class Heartbeat:
    """The state of `curvote serve` at its last heartbeat.

    ``beat`` is of the clock that nobody sets (since the machine started), the others
    are dates. ``good`` is when schedules were last known to fire, ``trouble`` why they
    do not, empty where they do; ``next`` names each pipeline's next firings, ``due``
    the latest that came while it was served; ``faulty`` says what is wrong with which
    pipeline of the file.
    """

    process: str
    url: str
    started: str
    beat: float
    good: str | None = None
    trouble: str = ""
    schedules: dict[str, dict[str, Any]] = field(default_factory=dict)
    next: dict[str, list[str]] = field(default_factory=dict)
    due: dict[str, list[str]] = field(default_factory=dict)
    faulty: dict[str, str] = field(default_factory=dict)

    @property
    def is_alive(self) -> bool:
        """Whether the writing process lives and wrote lately."""
        return is_alive(self.process) and time.monotonic() - self.beat < STALE_SECONDS

    def write(self, project: Project) -> None:
        """Replace the heartbeat file atomically."""
        path = _heartbeat_path(project)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(self)), encoding="utf-8")
        temporary.replace(path)


def last_heartbeat(project: Project) -> Heartbeat | None:
    """Return the heartbeat of the latest `serve`; None: none is readable."""
    try:
        text = _heartbeat_path(project).read_text(encoding="utf-8")
        return Heartbeat(**json.loads(text))
    except (OSError, ValueError, TypeError):
        return None


def _heartbeat_path(project: Project) -> Path:
    return project.state / "serve.json"


# A run is given so long after its firing, or until the next one where that is sooner.
_MAX_MARGIN = timedelta(minutes=15)
_FAILED_STATES = ("failed", "killed", "interrupted")


def check_health(
    project: Project, max_age: timedelta | None = None
) -> list[dict[str, Any]]:
    """Return ``{check, status, found, fix}`` for serve, schedules, pipelines.

    ``max_age`` is how old the last success of a pipeline may be; by default its last
    two firings must not both have gone by without one.
    """
    return [asdict(finding) for finding in _health_findings(project, max_age)]


def _health_findings(project: Project, max_age: timedelta | None) -> Iterator[Finding]:
    beat = last_heartbeat(project)
    if beat is None or not beat.is_alive:
        problem = "it is not running" if beat is None else "it ended, or hangs"
        yield Finding("serve", "failed", problem, "start `curvote serve`")
        return
    yield Finding("serve", "ok", f"runs since {beat.started}, at {beat.url}")
    way = f"see {project.state / 'prefect'}/*.log, or `curvote doctor`"
    yield Finding.of("schedules", beat.trouble, way, ", ".join(beat.next))
    for name, why in beat.faulty.items():
        yield Finding(name, "failed", why, f"`curvote plan {name}` says what is wrong")
    for name in beat.next.keys() - beat.faulty.keys():
        success, now = last_success_time(project, name), datetime.now(UTC)
        age = now - (success or datetime.fromisoformat(beat.started))
        state = (
            f"succeeded {_format_age(age)} ago" if success else "has not succeeded yet"
        )
        if max_age is not None:
            late = f", over {_format_age(max_age)}" if age > max_age else ""
        else:
            due = [datetime.fromisoformat(date) for date in beat.due.get(name, [])]
            latest = records.latest_run(project, name)
            if latest and latest.status == "running":  # was it late when that began?
                now = datetime.fromisoformat(latest.started)
            tried = latest is not None and latest.status in _FAILED_STATES
            late = describe_overdue(due, success, now, tried=tried)
        way = f"see `curvote status`, `curvote run {name}`"
        yield Finding.of(name, state + late if late else "", way, state)


def describe_overdue(
    due: Sequence[datetime],
    success: datetime | None,
    now: datetime,
    *,
    tried: bool = False,
) -> str:
    """Return the missed due times of a late pipeline, "" if it is not late.

    ``due`` are its latest firings, oldest first, ``success`` when it last ended well;
    ``tried`` says that its latest run has failed: where none ever ended well, one such
    is enough.
    """
    # A run is given time until the next firing, but not for longer than the margin.
    gaps = [b - a for a, b in pairwise(due)] or [_MAX_MARGIN]
    margins = zip(due, [gaps[0], *gaps], strict=False)
    over = [at for at, gap in margins if at + min(gap, _MAX_MARGIN) <= now]
    needed = 1 if success is None and tried else 2
    if len(over) < needed or (success is not None and success >= over[-2]):
        return ""
    firings = " and ".join(f"{at:%Y-%m-%d %H:%M}" for at in over[-needed:])
    return f"; it was due at {firings} UTC"


def last_success_time(project: Project, name: str) -> datetime | None:
    """Return the end of the latest completed run of a pipeline."""
    done = records.load_records(project, name, "completed", 1)
    ends = (record.finished for record in done if record.finished)
    return next(map(datetime.fromisoformat, ends), None)


def _format_age(span: timedelta) -> str:
    seconds = max(0, round(span.total_seconds()))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
