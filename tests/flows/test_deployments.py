"""What a runner takes away from Prefect's server, which others may use too."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, Self
from uuid import UUID, uuid4

import pytest

from curvote.flows.serving.deployments import pass_over

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


def test_only_our_own_late_runs_are_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another project on the same database has a pipeline of the same name."""
    client = Client()
    monkeypatch.setattr("prefect.client.orchestration.get_client", lambda: client)
    assert asyncio.run(pass_over([OURS])) == {"demo": 2}
    ours = [run.id for run in client.late if run.deployment_id == OURS]
    assert client.deleted == ours[1:]  # the first one waits longest
