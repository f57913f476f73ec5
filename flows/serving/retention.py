"""Retention of runs and artifacts: `curvote gc`, and clearing after scheduled runs."""

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from typing import Any

from curvote.base.errors import UserError
from curvote.chain.settings import parse_span
from curvote.flows import lines
from curvote.flows.serving.schedules import describe_schedule
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.store import garbage, records
from curvote.pipeline.store.garbage import DeletionGroup, RetentionLimits

_DAY_SECONDS = 86_400.0
_CYCLE = timedelta(days=9 * 366)  # a 29th of February may be eight years away


def retention_limits(project: Project, older: str | None = None) -> RetentionLimits:
    """Return the limits: ``older``, or the project's retention.

    UserError: ``older`` is no span of time or under an hour, or a limit is shorter than
    the time between two runs of a schedule, which would take what the next one needs.
    """
    file = PipelinesFile(project)
    called, spans_stated = "--older", dict.fromkeys(("runs", "artifacts"), older or "")
    if older is None:
        called = "runtime.retention"
        spans_stated = file.runtime().retention.model_dump(exclude_none=True)
    try:
        spans = {name: parse_span(span) for name, span in spans_stated.items()}
    except ValueError as error:
        named = f"{called} {next(iter(spans_stated.values()))}"
        raise UserError(f"{named}: {error}.") from None
    if spans:
        shortest = min(spans, key=lambda name: spans[name])
        for name, schedule in file.schedules().items():
            if _max_pause(schedule) > spans[shortest]:
                raise UserError(
                    f"{called} {spans_stated[shortest]}: {name} runs less often than"
                    f" that ({describe_schedule(schedule)}) and would find nothing of"
                    " its last run; keep at least as long as it pauses."
                )
    return RetentionLimits(**spans)


def _max_pause(schedule: Mapping[str, Any]) -> float:
    """Return the longest time between two firings in seconds; 0: it is invalid."""
    if schedule.get("interval") is not None:
        return float(schedule["interval"])
    # Days on which a cron line fires follow from the last three fields, the times of a
    # day from the first two: so it is looked at day by day, over years.
    line, zone = schedule["cron"], schedule.get("timezone") or "UTC"
    from zoneinfo import ZoneInfo

    from cronsim import CronSim, CronSimError

    start = datetime(2026, 1, 1, tzinfo=UTC)
    try:
        local_start = start.astimezone(ZoneInfo(zone))
        minute, hour, *days = line.split()
        daily = CronSim(f"{minute} {hour} * * *", start)
        yearly = CronSim(f"0 0 {' '.join(days)}", local_start)
        day = list(_firings_within(daily, timedelta(days=1)))
        dates = list(_firings_within(yearly, _CYCLE))
    except (CronSimError, ValueError, KeyError):
        return 0.0
    within = max((b - a for a, b in pairwise(day)), default=timedelta())
    night = day[-1] - day[0] if day else timedelta()
    gaps = (b.timestamp() - a.timestamp() for a, b in pairwise(dates))
    return max(within.total_seconds(), max(gaps, default=0.0) - night.total_seconds())


def _firings_within(firings: Iterator[datetime], span: timedelta) -> Iterator[datetime]:
    """Yield the firings within a span from the first one."""
    first = next(firings, None)
    if first is None:
        return
    yield first
    yield from takewhile(lambda at: at < first + span, firings)


def collect_garbage(
    project: Project,
    *,
    keep: int = 1,
    limits: RetentionLimits,
    dry_run: bool = False,
    requested: bool = True,
) -> list[DeletionGroup]:
    """Delete garbage, except in a dry run; return what it is.

    What MLflow cannot delete now keeps its records: the next time finds it by them.
    Where nobody ``requested``, artifacts without a limit stay.
    """
    piles = garbage.find_garbage(project, keep, limits)
    if not requested and limits.artifacts is None:
        piles = [pile for pile in piles if pile.kind != "artifacts"]
    deleted: list[DeletionGroup] = []
    for pile in piles:
        logged = {
            record.mlflow_run: run
            for run in pile.runs
            if (record := records.load_record(project, run)) and record.mlflow_run
        }
        if not logged:
            deleted.append(pile)
            continue
        # The records to delete, and MLflow's files of their runs.
        from curvote.flows.tracking.store import delete_runs

        more: list[DeletionGroup] = []
        try:
            forgotten, files = delete_runs(project, logged, dry_run=dry_run)
            stay = {run for name, run in logged.items() if name not in forgotten}
            more = [DeletionGroup.measured("mlflow", files)]
        except Exception as error:  # noqa: BLE001  whatever MLflow does, all else may go
            reason = str(error).strip().splitlines() or [type(error).__name__]
            lines.write_line(f"warning: MLflow keeps its runs ({reason[0]})", "warning")
            stay = set(logged.values())
        going = (run for run in pile.runs if run not in stay)
        deleted += [DeletionGroup.of_records(project, going), *more]
    if not dry_run:
        for pile in deleted:
            garbage.delete_group(project, pile)
    return deleted


def clear_if_due(project: Project) -> None:
    """Apply the project's retention at most once a day; failures are warnings.

    For the end of a scheduled run: nobody else would ask.
    """
    try:
        limits = retention_limits(project)
        if limits == RetentionLimits():
            return
        stamp, passed = project.state / "swept", _DAY_SECONDS
        if stamp.exists():
            passed = time.time() - stamp.stat().st_mtime
        if not 0 <= passed < _DAY_SECONDS:  # the last was a day ago, or in the future
            stamp.touch()
            collect_garbage(project, limits=limits, requested=False)
    except (UserError, OSError) as error:
        lines.write_line(f"warning: nothing was cleared: {error}", "warning")
