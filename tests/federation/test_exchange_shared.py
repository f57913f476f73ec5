"""The whole way by envelopes, over HTTP, through two services of one PostgreSQL."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curvote.intake.box import Intake
from curvote.intake.store import URL_VARIABLE
from tests import plain, postgres
from tests.envelope_service import LINES, serving
from tests.exchange import FAR, NAME, Server, answers
from tests.federation.test_exchange import blocked, some_clients

WHY = postgres.missing()


@pytest.mark.skipif(WHY is not None, reason=str(WHY))
def test_two_rounds_through_two_services(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Published tasks are served, answers accepted at either; no file holds a round.

    The run that goes on reads them from the same database.
    """
    few = FAR | {"clients": {"train": 30, "vote": 20}}
    server = Server(plain.write(tmp_path / "server", **{NAME: few}))
    with postgres.postgres() as url:
        monkeypatch.setenv(URL_VARIABLE, url)
        assert blocked(server) == "reports 0 of 30"
        with serving(server.project) as one, serving(server.project) as two:
            for asks, count in (("report", 30), ("vote", 20)):
                document, invitations = server.published(asks)
                task = json.loads(invitations.read_text().splitlines()[0])["task"]
                told = one.ask("GET", f"/v1/tasks/{task}")
                assert told.body == document.read_bytes()
                people = some_clients(count, count)
                sent = answers(server, asks, *people, tmp_path / asks)
                halves = b"".join(sent[::2]), b"".join(sent[1::2])
                for service, part in zip((one, two), halves, strict=True):
                    lines = service.send(part, LINES).lines
                    assert {line["status"] for line in lines} == {201}
                if asks == "report":
                    assert blocked(server) == "votes 0 of 20"
        plan, _ = server.run()
        assert not plan.blocked_steps()
        with Intake(server.project.intake) as intake:
            assert [r.accepted for r in intake.rounds(NAME)] == [30, 20]
            assert all(r.closed for r in intake.rounds(NAME))
    assert not server.project.intake.exists()
    assert sorted(p.name for p in server.project.root.iterdir() if p.is_dir()) == [
        "data"
    ]
