"""Whether `curvote serve` does its work, asked from outside, in a moment.

Neither Prefect nor its server is needed: serve leaves every few seconds how it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from curvote.flows.examining.finding import Finding
from curvote.flows.serving import heartbeat
from curvote.flows.serving.heartbeat import Heartbeat
from curvote.run import history, records
from curvote.run.project import Project

# Without an age that is given: how many of its periods a pipeline may be late.
_PERIODS = 2
_MARGIN = timedelta(minutes=15)


def health(project: Project, max_age: timedelta | None = None) -> list[dict[str, Any]]:
    """Return ``{check, status, found, fix}`` for serve, schedules and each pipeline.

    ``max_age`` is how old the last success of a pipeline may be; by default two of its
    periods and a quarter of an hour.
    """
    beat = heartbeat.last(project)
    return [asdict(each) for each in _checks(project, beat, max_age)]


def _checks(
    project: Project, beat: Heartbeat | None, max_age: timedelta | None
) -> Iterator[Finding]:
    if beat is None or not beat.is_alive:
        found = "it does not run" if beat is None else "it has gone, or hangs"
        yield Finding("serve", "failed", found, "start `curvote serve`")
        return
    yield Finding("serve", "ok", f"runs since {beat.started}, at {beat.url}")
    if beat.trouble:
        way = f"see {project.state / 'prefect'}/*.log, or `curvote doctor`"
        yield Finding("schedules", "failed", beat.trouble, way)
    else:
        yield Finding("schedules", "ok", ", ".join(beat.next))
    for name in beat.next:
        yield _pipeline(project, beat, name, max_age)


def _pipeline(
    project: Project, beat: Heartbeat, name: str, max_age: timedelta | None
) -> Finding:
    """Look at a pipeline's last success; before the first, serve's start counts."""
    allowed = max_age or _allowed(beat.next[name])
    success = last_success(project, name)
    since = success or datetime.fromisoformat(beat.started)
    age = datetime.now(UTC) - since
    said = "has not succeeded yet" if success is None else f"succeeded {_ago(age)} ago"
    if age <= allowed:
        return Finding(name, "ok", said)
    words = f"{said}, over {_ago(allowed)}"
    if success is None:
        words = f"{said}, served for {_ago(age)}"
    return Finding(name, "failed", words, f"see `curvote status`, `curvote run {name}`")


def last_success(project: Project, name: str) -> datetime | None:
    """Return when the latest completed run of a pipeline ended."""
    for run in records.newest(project, name, "completed"):
        record = history.load(project, run)
        if record is not None and record.finished:
            return datetime.fromisoformat(record.finished)
    return None


def _allowed(firings: list[str]) -> timedelta:
    """Return how long two periods are, by the longest of the next few."""
    dates = [datetime.fromisoformat(date) for date in firings]
    gaps = [b - a for a, b in pairwise(dates)]
    return _PERIODS * max(gaps, default=timedelta(days=366)) + _MARGIN


def _ago(span: timedelta) -> str:
    """Return a span as a user would say it, in its largest unit."""
    seconds = max(0, round(span.total_seconds()))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
