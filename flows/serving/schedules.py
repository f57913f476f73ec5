"""Schedules: their firing times, checks, and the file that states them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from curvote.base.errors import Problem, UserError
from curvote.pipeline.config.project import Project

if TYPE_CHECKING:
    from prefect.schedules import Schedule


# Intervals count from here, so that a restart does not put the next run off.
INTERVAL_ANCHOR = datetime(2020, 1, 1, tzinfo=UTC)
# Of the firings that came due: two to judge by, and what is not over yet.
_MAX_LATEST = 4
ScheduleSettings = Mapping[str, Any]


def describe_schedule(settings: ScheduleSettings) -> str:
    """Return a schedule in words."""
    interval = settings.get("interval")
    if interval is None:
        return f"at {settings['cron']!r} ({settings.get('timezone') or 'UTC'})"
    return f"every {interval:g} s"


def schedule_fields(settings: ScheduleSettings) -> dict[str, Any]:
    """Return a schedule by the names that Prefect has for its parts."""
    interval = settings.get("interval")
    if interval is None:
        return {"cron": settings["cron"], "timezone": settings.get("timezone") or "UTC"}
    return {"interval": timedelta(seconds=interval), "anchor_date": INTERVAL_ANCHOR}


def to_prefect(settings: ScheduleSettings) -> Schedule:
    """Return a schedule as Prefect's deployments take it."""
    from prefect.schedules import Schedule

    return Schedule(**schedule_fields(settings))


def firing_times(
    settings: ScheduleSettings,
    *,
    after: datetime,
    until: datetime | None = None,
    count: int | None = None,
) -> list[datetime]:
    """Return the firing times after ``after``, at most 1,000.

    ValueError: the cron line or the time zone is none.
    """
    from prefect.server.schemas import schedules

    fields = schedule_fields(settings)
    kinds = schedules.CronSchedule, schedules.IntervalSchedule
    schedule = kinds["interval" in fields].model_validate(fields)
    more = None if count is None else count + 1
    dates: Any = schedule.get_dates(n=more, start=after, end=until)
    try:
        dates.send(None)  # a coroutine that never waits
    except StopIteration as done:
        plain = (datetime.fromtimestamp(date.timestamp(), UTC) for date in done.value)
        return [date for date in plain if date > after][:count]
    raise RuntimeError("a schedule waits for something")


def firing_times_between(
    settings: ScheduleSettings, after: datetime, until: datetime
) -> Iterator[datetime]:
    """Yield all firing times after ``after`` until ``until``."""
    while times := firing_times(settings, after=after, until=until):
        yield from times
        after = times[-1]


class DueFirings:
    """The latest firings of schedules, observed since they were first seen.

    A schedule counts from when it was first seen: what it would have done before is
    nobody's fault.
    """

    def __init__(self) -> None:
        self._of: dict[str, tuple[ScheduleSettings, datetime, list[datetime]]] = {}

    def observe(self, schedules: Mapping[str, ScheduleSettings], now: datetime) -> None:
        """Note the firings since the last call; a new schedule starts now."""
        for name in self._of.keys() - schedules.keys():
            del self._of[name]
        for name, settings in schedules.items():
            settings_known, since, latest = self._of.get(name, (None, now, []))
            if settings_known != settings or since > now:
                settings_known, since, latest = settings, now, []
            more = firing_times(settings, after=since, until=now) if since < now else []
            self._of[name] = (settings, now, [*latest, *more][-_MAX_LATEST:])

    def resume(
        self,
        schedules: Mapping[str, ScheduleSettings],
        latest: Mapping[str, list[str]],
        now: datetime,
    ) -> None:
        """Resume with the firings that were due before a restart."""
        for name, settings in schedules.items():
            dates = [datetime.fromisoformat(date) for date in latest.get(name, [])]
            self._of[name] = (settings, now, dates)

    def clear(self) -> None:
        """Forget all firings."""
        self._of.clear()

    def to_json(self) -> dict[str, list[str]]:
        """Return the latest firings of each schedule, oldest first."""
        return {name: [d.isoformat() for d in o[2]] for name, o in self._of.items()}


def check_schedules(schedules: Mapping[str, ScheduleSettings]) -> None:
    """Refuse schedules that never fire or cannot be read (UserError)."""
    now, wrong = datetime.now(UTC), []
    for name, settings in schedules.items():
        try:
            fires = firing_times(settings, after=now, count=1)
            why = "" if fires else "it never fires"
        except ValidationError as error:
            why = error.errors()[0]["msg"].removeprefix("Value error, ")
        except (ValueError, TypeError) as error:
            why = str(error).strip().rstrip(".")
        if why:
            words = f"{name}: no schedule {describe_schedule(settings)}: {why}."
            wrong.append(Problem(words))
    if wrong:
        raise UserError.several(wrong)


@dataclass
class WatchedFile:
    """A file whose changes are reported once, after it has stood still.

    The first one is that it is there: it may have changed since somebody read it.
    """

    path: Path
    _reported_mark: tuple[int, ...] = ()
    _last_mark: tuple[int, ...] = ()

    def has_changed(self) -> bool:
        """Return whether the file changed since the last report and stood still."""
        mark: tuple[int, ...] = ()
        with suppress(OSError):
            about = self.path.stat()
            mark = about.st_mtime_ns, about.st_size, about.st_ino
        still, self._last_mark = mark == self._last_mark, mark
        if not still or mark == self._reported_mark:
            return False
        self._reported_mark = mark
        return True


Schedules = dict[str, dict[str, Any]]


def read_schedules(project: Project) -> tuple[Schedules, dict[str, str]]:
    """Return a project's schedules, and the problems of faulty pipelines.

    UserError: the file itself cannot be read.
    """
    from curvote.pipeline.config.file import PipelinesFile

    faulty: dict[str, UserError] = {}
    schedules = PipelinesFile(project).schedules(faulty)
    return schedules, {name: _first_problem(error) for name, error in faulty.items()}


def valid_schedules(schedules: Schedules, faulty: dict[str, str]) -> Schedules:
    """Return the schedules that fire; the others are added to ``faulty``."""
    valid = {}
    for name, settings in schedules.items():
        try:
            check_schedules({name: settings})
        except UserError as error:
            faulty[name] = _first_problem(error)
        else:
            valid[name] = settings
    return valid


def _first_problem(error: UserError) -> str:
    """Return the first problem in one line, and the number of further ones."""
    first = error.problems[0].message.splitlines()[0].rstrip(".")
    more = len(error.problems) - 1
    return f"{first} (and {more} more)" if more else first
