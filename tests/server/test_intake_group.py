"""Uploads that wait together: each is told after the commit, whatever fails."""

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from curvote.base import durable
from curvote.base.errors import InternalError
from curvote.intake import group as intake_group
from curvote.intake.box import Intake
from curvote.intake.group import GroupCommit, IntakeUnavailable, QueueFull
from curvote.messages.message import parse_messages
from tests.envelope_service import answered, invite
from tests.processes import until

N = 60


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where an intake stands."""
    return tmp_path / "intake.sqlite"


@pytest.fixture
def sent(path: Path) -> list[bytes]:
    """Return the envelopes of its round's clients."""
    return answered(invite(path, N))


@contextmanager
def taking(
    path: Path, checks: Any = parse_messages, **more: Any
) -> Iterator[GroupCommit]:
    """Run a group until the end of the block."""
    group = GroupCommit(lambda: Intake(path), checks, **more)
    group.start()
    try:
        yield group
    finally:
        assert group.stop(30)


def accepted(path: Path) -> int:
    """Return how many messages the round has."""
    with Intake(path) as intake:
        return intake.round("one-1").accepted


def test_many_uploads_share_transactions(path: Path, sent: list[bytes]) -> None:
    """Each has its own outcomes, in its own order; few transactions do."""
    sizes: list[int] = []
    with taking(path, committed=lambda told: sizes.append(len(told))) as group:
        told = [group.put([data, data]) for data in sent]
        for each in told:
            first, second = each.result(30)
            assert first is None
            assert second.reason == "used invitation"
    assert sum(sizes) == 2 * N
    assert len(sizes) < N / 2
    assert accepted(path) == N


def test_an_upload_of_any_size_is_cut_into_transactions(
    path: Path, sent: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most so many a transaction; the outcomes come back as one."""
    monkeypatch.setattr(intake_group, "GROUP_SIZE", 7)
    sizes: list[int] = []
    with taking(path, committed=lambda told: sizes.append(len(told))) as group:
        assert group.put(sent).result(30) == [None] * N
    assert max(sizes) == 7


def test_when_too_many_wait_the_next_is_sent_away(
    path: Path, sent: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And comes in once there is room; one alone always has room."""
    monkeypatch.setattr(intake_group, "MAX_WAITING", 5)
    going = threading.Event()

    def slow(*given: Any) -> Any:
        going.wait(30)
        return parse_messages(*given)

    with taking(path, slow) as group:
        first = group.put(sent[:10])
        with pytest.raises(QueueFull):
            group.put(sent[10:11])
        going.set()
        assert first.result(30) == [None] * 10
        while group.waiting:
            pass
        assert group.put(sent[10:11]).result(30) == [None]


def test_a_database_that_fails_takes_nothing_and_is_tried_again(
    path: Path, sent: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locked for too long, then damaged, then sound: said once each, nothing lost."""
    monkeypatch.setattr(durable, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(intake_group, "PROBE_SECONDS", 0.05)
    said: list[str] = []
    whole = path.read_bytes()
    with taking(path, failed=said.append) as group:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(IntakeUnavailable):
                group.put(sent[:1]).result(30)
            assert "another process has kept it" in group.problem
            other.execute("ROLLBACK")
        while group.problem:
            pass
        assert group.put(sent[:1]).result(30) == [None]
    assert accepted(path) == 1
    path.write_bytes(b"no intake" * 1000)
    with taking(path, failed=said.append) as group:
        with pytest.raises(IntakeUnavailable):
            group.put(sent[1:2]).result(30)
        assert "Put the" in group.problem or "backup" in group.problem
        path.write_bytes(whole)  # an older one: what came since comes again
        while group.problem:
            pass
        assert group.put(sent[:2]).result(30) == [None, None]
    assert len([words for words in said if words]) == 2
    assert all(len(words.splitlines()) <= 5 for words in said)


def test_a_full_disk_takes_nothing(path: Path, sent: list[bytes]) -> None:
    """With room again the same envelopes are accepted, each once."""
    full = threading.Event()
    full.set()

    def opening() -> Intake:
        intake = Intake(path)
        if full.is_set():
            (pages,) = intake._base.rows("PRAGMA page_count")
            intake._base.rows(f"PRAGMA max_page_count = {pages[0]}")
        return intake

    group = GroupCommit(opening, parse_messages)
    group.start()
    with pytest.raises(IntakeUnavailable):
        group.put(sent).result(30)
    assert "space" in group.problem
    assert accepted(path) == 0
    full.clear()
    assert group.put(sent).result(30) == [None] * N
    assert group.stop(30)
    assert accepted(path) == N


def test_a_check_that_breaks_ends_no_service(path: Path, sent: list[bytes]) -> None:
    """Its uploads are told so, and nothing of them is kept; the next are taken."""
    broken = iter([True, False])

    def checks(*given: Any) -> Any:
        if next(broken):
            raise ZeroDivisionError
        return parse_messages(*given)

    with taking(path, checks) as group:
        with pytest.raises(InternalError):
            group.put(sent[:3]).result(30)
        assert accepted(path) == 0
        assert group.put(sent[:3]).result(30) == [None] * 3


def test_who_waits_is_told_before_the_database_is_left(
    path: Path, sent: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To leave writes, and may wait for whoever else does."""
    leaving, leave = threading.Event(), Intake.__exit__

    def slow(intake: Intake, *given: Any) -> None:
        assert leaving.wait(30)
        leave(intake, *given)

    def breaks(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(Intake, "__exit__", slow)
    with taking(path, breaks) as group:
        with pytest.raises(InternalError):
            group.put(sent[:1]).result(10)
        leaving.set()


def test_two_services_accept_each_envelope_once(path: Path, sent: list[bytes]) -> None:
    """All envelopes to both, at the same time."""
    with taking(path) as one, taking(path) as two, ThreadPoolExecutor(2) as pool:

        def send(group: GroupCommit) -> int:
            told = [group.put([data]) for data in sent]
            return sum(each.result(60) == [None] for each in told)

        assert sum(pool.map(send, (one, two))) == N
    assert accepted(path) == N


def test_a_service_that_stays_leaves_no_trace_of_arrival(
    path: Path, sent: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal, whose pages tell what changed together, is emptied now and then."""
    monkeypatch.setattr(intake_group, "REWRITE_SECONDS", 0.0)
    with taking(path) as group:
        for data in sent:
            group.put([data]).result(30)
        journal = path.with_name(f"{path.name}-wal")
        while journal.stat().st_size:
            pass
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_what_a_killed_service_left_is_written_anew(
    path: Path, sent: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the next one, though nobody comes to it."""
    monkeypatch.setattr(intake_group, "REWRITE_SECONDS", 0.0)
    monkeypatch.setattr(intake_group, "PROBE_SECONDS", 0.05)
    killed = Intake(path)
    killed.take_batch(sent, parse_messages)
    journal = path.with_name(f"{path.name}-wal")
    assert journal.stat().st_size
    with taking(path):
        assert until(lambda: not journal.stat().st_size, 20)
    killed._base.close()
