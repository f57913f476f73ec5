"""A ledger that is locked, a clock that moves, a disk that fills, beside a release."""

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from curvote.base import durable
from curvote.base.errors import UserError
from curvote.ledger import chain, journal
from curvote.ledger.book import Ledger
from curvote.pipeline.config.project import Project
from curvote.pipeline.release import evidence, restore
from curvote.pipeline.release import production as session
from curvote.pipeline.store.artifacts import Artifact
from tests import production
from tests.processes import in_child

WHERE = "witness.jsonl"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project that is about to release, with a witness."""
    accounts = {"per_client": {"epsilon": 4}, "witness": f"{tmp_path}/{WHERE}"}
    return production.write(tmp_path / "house", ledger=accounts)


def completes(project: Project) -> None:
    """The same command again: both messages once, and everything is in order."""
    production.run(project)
    assert len(production.confirmed(project)) == 2
    assert len(production.ledger_entries(project)) == 2
    assert evidence.ledger_problems(project) == []


def test_a_ledger_that_is_locked_for_long_is_waited_for_then_named(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a minute (less here) in one line; the next run goes on."""
    monkeypatch.setattr(durable, "BUSY_SECONDS", 0.05)
    (first, *_) = production.releases(production.plan(project))
    with Ledger(project.ledger) as other:
        other._db.execute("BEGIN IMMEDIATE")
        with pytest.raises(UserError, match="another process has kept it") as raised:
            production.run(project)
        other._db.execute("ROLLBACK")
    assert len(str(raised.value).splitlines()) == 1
    assert not list(project.artifacts.glob(f"{first.stage.name}/*"))
    completes(project)


@pytest.mark.parametrize("moved", ["2020-01-01T00:00:00", "2037-01-01T00:00:00"])
@pytest.mark.parametrize("killed", [False, True])
def test_a_clock_that_moves_between_reservation_and_confirmation(
    project: Project, monkeypatch: pytest.MonkeyPatch, moved: str, killed: bool
) -> None:
    """Back or forward: the order is the chain's, no time decides anything."""
    commit = session.commit

    def moves(*given: Any) -> Artifact:
        monkeypatch.setattr(chain, "utc_now", lambda: f"{moved}+00:00")
        made = commit(*given)
        if killed:
            os._exit(9)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(session, "commit", moves)
        os.waitpid(in_child(partial(production.run, project)), 0)
    completes(project)
    with Ledger(project.ledger) as ledger:
        sequence = [move.sequence for move in ledger.movements()]
    assert sequence == sorted(sequence)


def full(stream: Any, data: bytes) -> None:
    """Write a part, as a disk that fills up does."""
    stream.write(data[: len(data) // 2])
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("call", [1, 2, 3, 6, 8])
def test_a_full_disk_under_an_append_only_file_releases_nothing_unseen(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """At each of its writes, of the copy or the witness: one line with the word space.

    What was published by then is counted; with room again the same command completes.
    """
    write, calls = journal._write_all, iter(range(1, 100))

    def fails(*given: Any) -> None:
        (full if next(calls) >= call else write)(*given)

    with monkeypatch.context() as patch:
        patch.setattr(journal, "_write_all", fails)
        with pytest.raises(UserError, match="no space is left on its disk") as raised:
            production.run(project)
    assert len(str(raised.value).splitlines()) == 1
    assert any(name in str(raised.value) for name in (WHERE, "releases.jsonl"))
    there = {folder.name for folder in project.artifacts.glob("[ep]*/[!.]*")}
    assert there <= {e.release for e in production.ledger_entries(project) if e.counts}
    completes(project)
    for path in (tmp_path / WHERE, project.state / "releases.jsonl"):
        lines = journal.Journal(path).lines()
        with Ledger(project.ledger) as ledger:
            heads = {move.head for move in ledger.movements()}
        assert {line["head"] for line in lines} == heads


def _kills(monkeypatch: pytest.MonkeyPatch, where: object, name: str) -> None:
    """Let the process die just before a call."""
    monkeypatch.setattr(where, name, lambda *_: os._exit(9))


@pytest.mark.parametrize(
    "dies",
    [
        lambda patch: _kills(patch, session, "commit"),
        lambda patch: _kills(patch, session, "_confirm_release"),
        lambda patch: _kills(patch, session, "_with_chain_head"),
    ],
)
def test_a_kill_between_reservation_and_confirmation_under_counts_nothing(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    dies: Callable[[pytest.MonkeyPatch], None],
) -> None:
    """What was published is confirmed, what was not is drawn once; nobody twice."""
    with monkeypatch.context() as patch:
        dies(patch)
        os.waitpid(in_child(partial(production.run, project)), 0)
    there = {folder.name for folder in project.artifacts.glob("[ep]*/[!.]*")}
    assert there <= {e.release for e in production.ledger_entries(project) if e.counts}
    completes(project)


@pytest.mark.parametrize("step", ["rename", "replace", "link"])
def test_a_kill_while_a_backup_takes_its_place_is_mended_by_the_same_command(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """At no moment is a ledger there that is believed and knows less."""
    production.run(project)
    backup = tmp_path / "backup.sqlite"
    backup.write_bytes(project.ledger.read_bytes())
    where = os if step == "link" else Path
    with Ledger(project.ledger):  # its journal is there, too
        child = in_child(partial(_dying, monkeypatch, where, step, project, backup))
        os.waitpid(child, 0)
    restore.restore_ledger(project, backup)
    assert evidence.ledger_problems(project) == []
    made = production.run(project)
    assert not made.steps_to_run()


def _dying(
    patch: pytest.MonkeyPatch, where: Any, step: str, project: Project, backup: Path
) -> None:
    patch.setattr(restore, "_replace_ledger", partial(_put, patch, where, step))
    restore.restore_ledger(project, backup)


def _put(
    patch: pytest.MonkeyPatch, where: Any, step: str, made: Path, ledger: Path
) -> None:
    _kills(patch, where, step)
    restoring_put(made, ledger)


restoring_put = restore._replace_ledger
