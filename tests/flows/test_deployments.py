"""What a runner takes away from Prefect's server, which others may use too."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Self
from uuid import UUID, uuid4

import pytest

from curvote.flows.serving import runner
from curvote.flows.serving.runner import delete_surplus_runs, missed_firings

OURS, THEIRS = uuid4(), uuid4()


class Client:
    """A client of a server on which runs of two projects are late."""

    def __init__(self) -> None:
        self.late = [
            SimpleNamespace(
                id=uuid4(),
                deployment_id=whose,
                auto_scheduled=True,
                tags=["curvote"],
                parameters={"pipeline": "demo"},
            )
            for whose in (THEIRS, OURS, OURS, THEIRS, OURS)
        ]
        self.deleted: list[UUID] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def read_flow_runs(self, flow_run_filter: Any, **_: Any) -> list[Any]:
        wanted = flow_run_filter.deployment_id
        if wanted is None:
            return self.late
        return [run for run in self.late if run.deployment_id in wanted.any_]

    async def delete_flow_run(self, run: UUID) -> None:
        self.deleted.append(run)


def begun_of(monkeypatch: pytest.MonkeyPatch, moments: list[datetime]) -> None:
    """Let the server have begun runs at these moments; it returns 200 at once."""
    runs = [SimpleNamespace(expected_start_time=at, state=None) for at in moments]

    class Server:
        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def read_flow_runs(
            self, *, limit: int, offset: int = 0, **_: Any
        ) -> list[SimpleNamespace]:
            return runs[offset : offset + min(limit, 200)]

    monkeypatch.setattr("prefect.client.orchestration.get_client", lambda **_: Server())


@pytest.mark.parametrize(
    "schedule", [{"interval": 60.0}, {"cron": "* * * * *", "timezone": "Asia/Tokyo"}]
)
def test_thousands_of_missed_firings_are_counted(
    monkeypatch: pytest.MonkeyPatch, schedule: dict[str, Any]
) -> None:
    """Three days of a minute each, the first of which runs were begun in."""
    since, minute = datetime(2026, 11, 1, tzinfo=UTC), timedelta(minutes=1)
    begun_of(monkeypatch, [since + (i + 1) * minute for i in range(1440)])
    until = since + timedelta(days=3, seconds=30)
    found = missed_firings(OURS, schedule, since.isoformat(), until)
    assert found == {
        "count": 2 * 1440,
        "first": (since + 1441 * minute).isoformat(),
        "last": (since + timedelta(days=3)).isoformat(),
    }


def test_what_fires_each_second_for_years_is_counted_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At least so many; nobody waits for all of them to be looked at."""
    begun_of(monkeypatch, [])
    monkeypatch.setattr(runner, "MAX_MISSED", 5000)
    until = datetime(2026, 11, 1, tzinfo=UTC)
    found = missed_firings(OURS, {"interval": 1.0}, "2020-01-01T00:00:00+00:00", until)
    assert found is not None
    assert 4998 <= found["count"] <= 5000
    assert found["last"] == (until - timedelta(seconds=1)).isoformat()


def test_only_our_own_late_runs_are_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another project on the same database has a pipeline of the same name."""
    client = Client()
    monkeypatch.setattr("prefect.client.orchestration.get_client", lambda: client)
    assert asyncio.run(delete_surplus_runs([OURS])) == {"demo": 2}
    ours = [run.id for run in client.late if run.deployment_id == OURS]
    assert client.deleted == ours[1:]  # the first one waits longest
