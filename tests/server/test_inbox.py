"""The inbox: others write into it, and no file in it stops or loses another one."""

from __future__ import annotations

import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typer.testing import CliRunner

from curvote.base.errors import UserError
from curvote.cli.commands import intake as cli_intake
from curvote.intake import inbox as inbox_files
from curvote.intake.inbox import InboxResult, accept_inbox
from curvote.messages.message import parse_message
from curvote.pipeline.config.project import Project
from tests.boxes import Box
from tests.rounds import quiet


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    """Return an inbox with a round of eight."""
    made = Box(tmp_path)
    with made.intake:
        yield made


LONG = "x" * 250 + ".json"  # 255 characters: as long as a name can be


def test_a_long_name_stops_nothing(box: Box) -> None:
    """A reason beside a file of this name would need a longer one."""
    box.put(LONG, b"hello\n")
    box.put("a.json")
    for name in ("\n.json", "-rf.json", "ü\x1b[2J.json", os.fsdecode(b"\xff.json")):
        box.put(name, name.encode(errors="replace") + b"\n")
    done = box.take()
    assert (done.accepted, done.refused.total()) == (1, 5)
    assert box.names() == set()
    assert len(box.quarantined()) == 5


def test_a_half_written_envelope_stays_until_it_is_complete(box: Box) -> None:
    """Its client has spent the budget for it: it is not set aside."""
    data = next(box.free)
    for end in (0, 1, 100, len(data) - 1):
        box.put("a.json", data[:end])
        done = box.take()
        assert (done.accepted, done.refused.total()) == (0, 0)
        assert done.files_left == {"still being written": 1}
        assert not box.kept.exists()
    box.put("a.json", data)
    assert box.take() == InboxResult(1)
    assert box.names() == set()


def test_lines_wait_until_nobody_adds_to_them(box: Box) -> None:
    """A whole line says nothing about the next one; dots are still being written."""
    path = box.put("many.jsonl", b"".join(box.sent[:3]))
    box.put(".tmp-1.json", box.sent[3])
    assert box.take().files_left == {"still being written": 1}
    quiet(path)
    assert box.take().accepted == 3
    assert box.names() == {".tmp-1.json"}
    (box.inbox / ".tmp-1.json").rename(box.inbox / "1.json")
    assert box.take().accepted == 1


def test_a_slow_writer_is_waited_for(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as it goes on; what then is no envelope is set aside."""
    monkeypatch.setattr(inbox_files, "QUIET_SECONDS", 0.3)
    data = next(box.free)

    def slowly() -> None:
        with (box.inbox / "a.json").open("wb", buffering=0) as stream:
            for i in range(0, len(data), 100):
                stream.write(data[i : i + 100])
                time.sleep(0.05)

    writer = Thread(target=slowly)
    writer.start()
    accepted = 0
    while writer.is_alive():
        accepted += box.take().accepted
    writer.join()
    assert accepted + box.take().accepted == 1
    assert not box.kept.exists()
    torn = box.put("b.json", box.sent[1][:100])
    quiet(torn)
    assert box.take().refused == {"unreadable": 1}
    assert box.quarantined() == [box.sent[1][:100]]


def test_a_file_that_changes_while_it_is_read_is_not_deleted(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one may stand under its name by now."""
    quiet(box.put("many.jsonl"))
    batch = box.intake.take_batch

    def slow(*given: Any) -> list[Any]:
        fresh = box.put("new")
        fresh.replace(box.inbox / "many.jsonl")
        return batch(*given)

    monkeypatch.setattr(box.intake, "take_batch", slow)
    assert box.take() == InboxResult(
        1, files_left=Counter({"changed while it was read": 1})
    )
    monkeypatch.undo()
    quiet(box.inbox / "many.jsonl")
    assert box.take().accepted == 1


def _symlink(path: Path) -> None:
    (path.parent.parent / "secret").write_text('{"a": "secret"}\n')
    path.symlink_to("../secret")


def _hard_link(path: Path) -> None:
    (path.parent.parent / "secret").write_text('{"a": "secret"}\n')
    path.hardlink_to(path.parent.parent / "secret")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        context = Path.cwd()
        os.chdir(path.parent)  # its address has room for 108 characters
        made.bind(path.name)
        os.chdir(context)


ODD = [
    _symlink,
    _hard_link,
    _socket,
    os.mkfifo,
    Path.mkdir,
    lambda path: path.symlink_to(path.name),
    lambda path: path.symlink_to("/dev/zero"),
    lambda path: path.symlink_to("nowhere"),
]


@pytest.mark.parametrize("end", ["json", "jsonl"])
@pytest.mark.parametrize("make", ODD)
def test_what_is_no_regular_file_is_left_alone(
    box: Box, make: Callable[[Path], object], end: str
) -> None:
    """Never followed, never waited for, never copied; the others go on."""
    make(box.inbox / f"odd.{end}")
    box.put("a.json")
    done = box.take()
    assert (done.accepted, done.refused.total()) == (1, 0)
    assert done.files_left == {"no regular file of its own": 1}
    assert box.names() == {f"odd.{end}"}
    assert not box.kept.exists()


def test_an_inbox_that_is_no_folder_is_said(box: Box, tmp_path: Path) -> None:
    """Before anything is taken."""
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="the inbox"):
        accept_inbox(box.intake, tmp_path / "file", box.kept, parse_message)


def test_the_command_tells_what_it_left(project: Project) -> None:
    """The operator learns of it; nobody else does."""
    inbox = project.inbox("tiny")
    inbox.mkdir(parents=True)
    (inbox / "odd.json").mkdir()
    (inbox / LONG).write_bytes(b"junk\n")
    words = ["take", "tiny", "--project", str(project.root)]
    said = CliRunner().invoke(cli_intake.app, words)
    assert said.exit_code == 0, said.exception
    assert said.stdout.splitlines() == [
        "accepted 0, refused 1",
        "  unreadable: 1",
        f"reasons in {project.quarantine('tiny')}",
        "left in the inbox 1",
        "  no regular file of its own: 1",
    ]
