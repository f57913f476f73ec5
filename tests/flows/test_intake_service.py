"""The processes of the intake's service: how they begin, end and fail."""

import os
import signal
import socket
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from curvote.intake.box import Intake
from curvote.pipeline.config.project import Project
from tests.envelope_service import LINES, Service, answered, invite, project, serving
from tests.processes import run_command, until

N = 30


@pytest.fixture
def place(tmp_path: Path) -> Project:
    """Return a project without a round yet."""
    return project(tmp_path / "p")


def accepted(place: Project) -> int:
    """Return how many messages the round has."""
    with Intake(place.intake) as intake:
        return intake.round("one-1").accepted


def test_it_drains_and_ends(place: Project) -> None:
    """SIGTERM: what came is answered, the next are sent away, exit 0, no trace left."""
    first, second, *_ = answered(invite(place.intake, N))
    with serving(place) as service:
        assert service.send(first).status == 201
        service.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        told = service.send(second)
        assert (told.status, told.headers["retry-after"]) == (503, "5")
        assert told.json["type"] == "urn:curvote:intake:draining"
        assert service.ask("GET", "/readyz").status == 503
        assert service.process.wait(20) == 0
        assert len(service.log.read_text().splitlines()) == 2
    assert accepted(place) == 1
    assert not [*place.state.glob("intake-counts-*")]
    assert [p.name for p in place.intake.parent.glob("intake*")] == [place.intake.name]


def test_several_workers_share_one_port_and_one_count(place: Project) -> None:
    """Whoever of them is asked; one that is killed is replaced, all end together."""
    sent = answered(invite(place.intake, N))
    with serving(place, "--workers", "2") as service:
        with ThreadPoolExecutor(8) as pool:
            assert {told.status for told in pool.map(service.send, sent)} == {201}
        assert {told.status for told in map(service.send, sent[:5])} == {200}
        assert tells(service, f'envelopes_total{{outcome="accepted"}} {N}.0')
        assert until(lambda: tells(service, "curvote_intake_ready 2.0"), 20)
        mine = children(service)
        os.kill(mine[0], signal.SIGKILL)
        while not set(children(service)) - set(mine):
            time.sleep(0.1)
        while (told := service.tried(sent[0])) != 200:
            assert told == 0
        assert until(lambda: tells(service, "curvote_intake_ready 2.0"), 20)
        mine = children(service)
        service.process.kill()
        service.process.wait()
        assert until(
            lambda: not any(Path(f"/proc/{each}").exists() for each in mine), 20
        )
    assert accepted(place) == N
    assert len([*place.state.glob("intake-counts-*")]) == 1  # it was killed
    with serving(place) as service:
        service.end()
    assert not [*place.state.glob("intake-counts-*")]


def tells(service: Service, figure: str) -> bool:
    """Say whether the counts hold a figure, whichever worker is asked for them."""
    try:
        return figure in service.ask("GET", "/metrics").body.decode()
    except OSError:
        return False


def children(service: Service) -> list[int]:
    """Return the processes that accept."""
    path = f"/proc/{service.process.pid}/task/{service.process.pid}/children"
    pids = [int(each) for each in Path(path).read_text().split()]
    texts = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids}
    return [pid for pid, text in texts.items() if b"spawn_main" in text]


def test_what_hinders_the_start_is_said(place: Project) -> None:
    """A port that is taken, a damaged intake, a pipeline that is not there: exit 2."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "--port" in refused(place, "far", "--port", port)
    assert "Did you mean 'far'" in refused(place, "fur")
    place.state.mkdir(parents=True, exist_ok=True)
    place.intake.write_bytes(b"no intake")
    assert "backup" in refused(place, "far")
    place.intake.unlink()
    nowhere = "postgresql://me:hidden-word@127.0.0.1:1/x"
    said = refused(place, "far", CURVOTE_INTAKE_URL=nowhere)
    assert "cannot be reached" in said
    assert "hidden-word" not in said


def refused(place: Project, name: str, *words: str, **environment: str) -> str:
    """Return what the command says that does not start."""
    command = ["intake", "serve", name, *words, "--project", str(place.root)]
    done = run_command(*command, env=os.environ | environment)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) <= 5
    assert "Traceback" not in done.stderr
    return done.stderr


def test_nothing_of_whom_or_when_is_stored_or_logged(place: Project) -> None:
    """No address, no invitation and no time: in log, metrics and database.

    What is searched for is what came: every invitation, what clients call themselves,
    and the day and second of now.
    """
    invited = invite(place.intake, N)
    sent = answered(invited)
    canary = {"User-Agent": "canary-agent", "X-Forwarded-For": "203.0.113.77"}
    with serving(place) as service:
        for data in sent[:5]:
            assert service.send(data, LINES | canary).status == 200
        service.send(sent[5][:-1] + b"\0\n", LINES | canary)
        service.ask("GET", "/v1/tasks/canary-path?canary=1", headers=canary)
        page = service.ask("GET", "/metrics").body
        service.end()
        log = service.log.read_bytes()
    names = [each.id.encode() for each in invited] + [
        each.key.encode() for each in invited
    ]
    now = time.time()
    hidden = [b"203.0.113.77", b"canary", time.strftime("%Y-%m-%d").encode()]
    hidden += [str(int(now))[:8].encode()]
    for text in (page, log):
        assert not [word for word in hidden + names if word in text]
    stored = place.intake.read_bytes()
    assert not [word for word in hidden if word in stored]
    others = [p for p in place.root.rglob("*") if p.is_file() and p != place.intake]
    for path in others:
        assert not [word for word in names if word in path.read_bytes()], path
    with closing(sqlite3.connect(place.intake)) as db:
        texts = [text for (text,) in db.execute("SELECT payload FROM messages")]
    assert len(texts) == 5
    assert not [word for word in names for text in texts if word.decode() in text]


@pytest.mark.faults
def test_no_kill_loses_an_answered_envelope_or_counts_one_twice(
    place: Project,
) -> None:
    """Killed at any moment, between commit and answer, too; then all sent again."""
    sent = answered(invite(place.intake, 400))
    told: set[int] = set()
    for kill in range(8):
        with serving(place) as service, ThreadPoolExecutor(8) as pool:
            end = pool.submit(service.kill, 0.03 * (kill + 1))
            found = pool.map(lambda k: service.tried(sent[k]), range(kill * 40, 400))
            told |= {kill * 40 + k for k, status in enumerate(found) if status}
            end.result()
        assert accepted(place) >= len(told)
    with serving(place) as service:
        statuses = [service.send(data).status for data in sent]
        assert set(statuses) <= {200, 201}
        assert all(statuses[k] == 200 for k in told)
    assert accepted(place) == 400
