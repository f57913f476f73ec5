"""When a schedule fires: Prefect's own arithmetic of time zones and cron lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from curvote.errors import Problem, UserError

if TYPE_CHECKING:
    from prefect.schedules import Schedule

# Intervals count from here, so that a restart does not put the next run off.
_ANCHOR = datetime(2020, 1, 1, tzinfo=UTC)
# Of the firings that came due: two to judge by, and what is not over yet.
_LATEST = 4
Settings = Mapping[str, Any]


def in_words(settings: Settings) -> str:
    """Return a schedule as a user would say it."""
    interval = settings.get("interval")
    if interval is None:
        return f"at {settings['cron']!r} ({settings.get('timezone') or 'UTC'})"
    return f"every {interval:g} s"


def for_prefect(settings: Settings) -> Schedule:
    """Return the schedule that a deployment is given."""
    from prefect.schedules import Cron, Interval

    interval = settings.get("interval")
    if interval is None:
        return Cron(settings["cron"], timezone=settings.get("timezone") or "UTC")
    return Interval(interval, anchor_date=_ANCHOR)


def firings(
    settings: Settings,
    *,
    after: datetime,
    until: datetime | None = None,
    count: int | None = None,
) -> list[datetime]:
    """Return when it fires after ``after``, 1,000 times at most.

    ValueError: the cron line or the time zone is none.
    """
    from prefect.server.schemas import schedules

    interval = settings.get("interval")
    made: schedules.CronSchedule | schedules.IntervalSchedule
    if interval is None:
        zone = settings.get("timezone") or "UTC"
        made = schedules.CronSchedule(cron=settings["cron"], timezone=zone)
    else:
        each = {"interval": timedelta(seconds=interval), "anchor_date": _ANCHOR}
        made = schedules.IntervalSchedule.model_validate(each)
    more = None if count is None else count + 1
    dates = _given(made.get_dates(n=more, start=after, end=until))
    plain = (datetime.fromtimestamp(date.timestamp(), UTC) for date in dates)
    return [date for date in plain if date > after][:count]


def _given(dates: Any) -> list[datetime]:
    """Run a coroutine of Prefect's that waits for nothing."""
    try:
        dates.send(None)
    except StopIteration as done:
        return list(done.value)
    raise RuntimeError("a schedule waits for something")


def between(settings: Settings, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield all firings after ``after`` until ``until``, however many they are."""
    while found := firings(settings, after=after, until=until):
        yield from found
        after = found[-1]


class Due:
    """The latest firings of schedules, as they come while somebody looks.

    A schedule counts from when it was first seen: what it would have done before is
    nobody's fault.
    """

    def __init__(self) -> None:
        self._of: dict[str, tuple[Settings, datetime, list[datetime]]] = {}

    def look(self, schedules: Mapping[str, Settings], now: datetime) -> None:
        """Note what has come due since the last time; what is new begins now."""
        for name in self._of.keys() - schedules.keys():
            del self._of[name]
        for name, settings in schedules.items():
            known, since, latest = self._of.get(name, (None, now, []))
            if known != settings or since > now:
                known, since, latest = settings, now, []
            more = firings(settings, after=since, until=now) if since < now else []
            self._of[name] = (settings, now, [*latest, *more][-_LATEST:])

    def take_over(
        self,
        schedules: Mapping[str, Settings],
        latest: Mapping[str, list[str]],
        now: datetime,
    ) -> None:
        """Go on with what came due before a restart; what went by meanwhile is left."""
        for name, settings in schedules.items():
            dates = [datetime.fromisoformat(date) for date in latest.get(name, [])]
            self._of[name] = (settings, now, dates)

    def forget(self) -> None:
        """Begin anew: nothing could run for a while."""
        self._of.clear()

    def told(self) -> dict[str, list[str]]:
        """Return the latest firings of each schedule, oldest first."""
        return {name: [d.isoformat() for d in o[2]] for name, o in self._of.items()}


def check(schedules: Mapping[str, Settings]) -> None:
    """Refuse schedules that never fire or cannot be read; UserError names each."""
    now = datetime.now(UTC)
    found = {name: _problem(each, now) for name, each in schedules.items()}
    wrong = [
        Problem(f"{name}: no schedule {in_words(schedules[name])}: {why}.")
        for name, why in found.items()
        if why
    ]
    if wrong:
        raise UserError.several(wrong)


def _problem(settings: Settings, now: datetime) -> str:
    try:
        return "" if firings(settings, after=now, count=1) else "it never fires"
    except ValidationError as error:
        return error.errors()[0]["msg"].removeprefix("Value error, ")
    except (ValueError, TypeError) as error:
        return str(error).strip().rstrip(".")
