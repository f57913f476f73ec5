"""How long things stay: asked for by `curvote gc`, and kept to after scheduled runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from curvote.errors import UserError
from curvote.flows.output import lines
from curvote.flows.serving.firing import in_words
from curvote.run import garbage, history
from curvote.run.config.file import PipelinesFile
from curvote.run.config.runtime import seconds
from curvote.run.garbage import Limits, Pile
from curvote.run.project import Project

_DAY = 86_400.0
_CYCLE = timedelta(days=9 * 366)  # a 29th of February may be eight years away


def limits_of(project: Project, older: str | None = None) -> Limits:
    """Return how long runs and artifacts stay: ``older``, or the project's retention.

    UserError: ``older`` is no span of time or under an hour, or a limit is shorter than
    the time between two runs of a schedule, which would take what the next one needs.
    """
    file = PipelinesFile(project)
    if older is not None:
        return _safe(file, dict.fromkeys(("runs", "artifacts"), older), "--older")
    stated = file.runtime().retention.model_dump(exclude_none=True)
    return _safe(file, stated, "runtime.retention")


def _safe(file: PipelinesFile, stated: Mapping[str, str], called: str) -> Limits:
    try:
        spans = {name: seconds(span) for name, span in stated.items()}
    except ValueError as error:
        raise UserError(f"{called} {next(iter(stated.values()))}: {error}.") from None
    if spans:
        shortest = min(spans, key=lambda name: spans[name])
        for name, schedule in file.schedules().items():
            if _longest_pause(schedule) > spans[shortest]:
                raise UserError(
                    f"{called} {stated[shortest]}: {name} runs less often than that"
                    f" ({in_words(schedule)}) and would find nothing of its"
                    " last run; keep at least as long as it pauses."
                )
    return Limits(**spans)


def _longest_pause(schedule: Mapping[str, Any]) -> float:
    """Return the seconds between two firings, the most where they differ."""
    if schedule.get("interval") is not None:
        return float(schedule["interval"])
    return _cron_pause(schedule["cron"], schedule.get("timezone") or "UTC")


def _cron_pause(line: str, zone: str) -> float:
    """Return the longest pause of a cron line; one that is none is said by `serve`.

    Days on which it fires follow from the last three fields, the times of a day from
    the first two: so it is looked at day by day, over years.
    """
    from zoneinfo import ZoneInfo

    from cronsim import CronSim, CronSimError

    start = datetime(2026, 1, 1, tzinfo=UTC)
    try:
        begun = start.astimezone(ZoneInfo(zone))
        minute, hour, *days = line.split()
        day = list(_until(CronSim(f"{minute} {hour} * * *", start), timedelta(days=1)))
        dates = list(_until(CronSim(f"0 0 {' '.join(days)}", begun), _CYCLE))
    except (CronSimError, ValueError, KeyError):
        return 0.0
    within = max((b - a for a, b in pairwise(day)), default=timedelta())
    night = day[-1] - day[0] if day else timedelta()
    gaps = (b.timestamp() - a.timestamp() for a, b in pairwise(dates))
    return max(within.total_seconds(), max(gaps, default=0.0) - night.total_seconds())


def _until(firings: Iterator[datetime], span: timedelta) -> Iterator[datetime]:
    """Yield firings of a span that begins at the first one."""
    first = next(firings, None)
    if first is None:
        return
    yield first
    yield from takewhile(lambda at: at < first + span, firings)


def collect(
    project: Project,
    *,
    keep: int = 1,
    limits: Limits,
    dry_run: bool = False,
    asked: bool = True,
) -> list[Pile]:
    """Delete, but for a dry run, what may go; return it, MLflow's part too.

    What MLflow cannot delete now keeps its records: the next time finds it by them.
    Where nobody ``asked``, artifacts without a limit stay.
    """
    piles = garbage.piles(project, keep, limits)
    if not asked and limits.artifacts is None:
        piles = [pile for pile in piles if pile.kind != "artifacts"]
    found: list[Pile] = []
    for pile in piles:
        if pile.kind == "records" and pile.paths:
            found += _with_mlflow(project, pile, dry_run)
        else:
            found.append(pile)
    if not dry_run:
        for pile in found:
            garbage.delete(project, pile)
    return found


def _with_mlflow(project: Project, records: Pile, dry_run: bool) -> list[Pile]:
    """Return the records that may go with what MLflow holds of their runs."""
    logged = {
        record.mlflow_run: path
        for path in records.paths
        if (record := history.load(project, path.stem)) and record.mlflow_run
    }
    if not logged:
        return [records]
    from curvote.flows.tracking.retention import forget

    try:
        gone = forget(project, logged, dry_run=dry_run)
    except Exception as error:  # noqa: BLE001  whatever MLflow does, all else may go
        reason = str(error).strip().splitlines() or [type(error).__name__]
        lines.say(f"warning: MLflow keeps its runs ({reason[0]})", "warning")
        stay = set(logged.values())
        return [Pile.of("records", (p for p in records.paths if p not in stay))]
    stay = {path for run, path in logged.items() if run not in gone.runs}
    going = Pile.of("records", (p for p in records.paths if p not in stay))
    return [going, Pile.of("mlflow", gone.files)]


def sweep(project: Project) -> None:
    """Keep to the project's retention, once a day at most; a failure is a warning.

    For the end of a scheduled run: nobody else would ask.
    """
    try:
        limits = limits_of(project)
        if limits != Limits() and _is_due(project.state / "swept"):
            collect(project, limits=limits, asked=False)
    except (UserError, OSError) as error:
        lines.say(f"warning: nothing was cleared: {error}", "warning")


def _is_due(stamp: Path) -> bool:
    """Say whether the last time is a day ago; a clock set back is no reason to wait."""
    passed = time.time() - stamp.stat().st_mtime if stamp.exists() else _DAY
    if 0 <= passed < _DAY:
        return False
    stamp.touch()
    return True
