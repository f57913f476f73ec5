"""The inbox: others write into it, and no file in it stops or loses another one."""

import errno
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
from curvote.intake import inbox as taking
from curvote.intake.inbox import InboxResult, accept_inbox
from curvote.messages.message import parse_message
from curvote.pipeline.config.project import Project
from curvote.wire.envelope import LARGEST_ENVELOPE
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
    monkeypatch.setattr(taking, "QUIET_SECONDS", 0.3)
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
        f"refused ones, each with its reason: {project.quarantine('tiny')}",
        "not taken yet 1",
        "  no regular file of its own: 1",
    ]


def test_no_more_of_a_file_is_read_than_an_envelope_can_have(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sparse file of 10 GB stays; nothing that was not read whole is deleted."""
    read: list[int] = []

    class Counting:
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        def read(self, most: int) -> bytes:
            read.append(most)
            return self._stream.read(most)

        def readline(self, most: int) -> bytes:
            read.append(most)
            return self._stream.readline(most)

    whole = taking.read_envelopes
    monkeypatch.setattr(taking, "read_envelopes", lambda f, s: whole(f, Counting(s)))
    huge = box.put("huge.json", b"")
    os.truncate(huge, 10**10)
    lines = box.put(
        "lines.jsonl", box.sent[1] + b"x" * (2 * LARGEST_ENVELOPE) + b"\n" + box.sent[2]
    )
    quiet(huge, lines)
    box.put("a.json")
    done = box.take()
    assert done.accepted == 3
    assert done.files_left == {"too large": 2}
    assert max(read) == LARGEST_ENVELOPE + 1
    assert box.names() == {"huge.json", "lines.jsonl"}
    assert not box.kept.exists()


def test_a_line_without_an_end_is_given_up(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes before it is taken; a sparse file of 1 TB takes no hours."""
    monkeypatch.setattr(taking, "MAX_SKIPPED", 3)
    path = box.put("endless.jsonl")
    os.truncate(path, 10**12)
    quiet(path)
    done = box.take()
    assert (done.accepted, done.files_left) == (1, {"too large": 1})
    assert box.names() == {"endless.jsonl"}


def test_the_quarantine_has_room_for_so_many(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What finds no room stays in the inbox; honest envelopes are taken in."""
    monkeypatch.setattr(taking, "MAX_FILES", 3)
    for i in range(10):
        box.put(f"{i}.json", b"junk %d\n" % i)
    box.put("a.json")
    done = box.take()
    assert (done.accepted, done.refused, done.files_left) == (
        1,
        {"unreadable": 10},
        {"quarantine is full": 7},
    )
    assert len(box.quarantined()) == 3
    assert len(box.names()) == 7
    assert box.take().files_left.total() == 7
    monkeypatch.setattr(taking, "MAX_FILES", 100)
    monkeypatch.setattr(taking, "MAX_BYTES", 900)
    box.put("big.json", b"x" * 800)
    quiet(box.inbox / "big.json")
    box.take()
    assert sum(p.stat().st_size for p in box.kept.iterdir()) < 1000
    assert "big.json" in box.names()


def test_the_same_bytes_are_kept_once(box: Box) -> None:
    """Sending them again fills nothing."""
    for _ in range(3):
        for i in range(5):
            box.put(f"{i}.json", b"junk\n")
        assert box.take().refused == {"unreadable": 5}
    assert box.quarantined() == [b"junk\n"]


def test_of_a_copy_nothing_is_kept(box: Box) -> None:
    """Not even its digest: with the keys and the messages one could try all pairs."""
    data = next(box.free)
    box.put("a.json", data)
    box.put("b.json", data)
    assert box.take() == InboxResult(1, Counter({"used invitation": 1}))
    box.put("c.json", data)
    assert box.take().refused == {"used invitation": 1}
    assert not box.kept.exists()
    assert box.names() == set()


FAULTS = [errno.EACCES, errno.EIO, errno.ENOENT, errno.EMFILE]


@pytest.mark.parametrize("code", FAULTS)
@pytest.mark.parametrize("call", ["open", "unlink", "stat"])
def test_one_bad_file_never_stops_the_others(
    box: Box, monkeypatch: pytest.MonkeyPatch, code: int, call: str
) -> None:
    """Forbidden, broken or vanished: counted, told, left."""
    box.put("bad.json")
    real = getattr(os, call)

    def faulty(path: Any, *given: Any, **named: Any) -> Any:
        if path == "bad.json":
            raise OSError(code, os.strerror(code))
        return real(path, *given, **named)

    for name in "abc":
        box.put(f"{name}.json")
    with monkeypatch.context() as patch:
        patch.setattr(os, call, faulty)
        done = box.take()
    assert done.accepted == 3 + (call == "unlink")
    assert done.files_left.total() == 1
    assert box.names() == {"bad.json"}
    again = box.take()
    assert (again.accepted, again.refused.total()) == (
        (0, 1) if call == "unlink" else (1, 0)
    )


def test_a_quarantine_that_cannot_be_written_loses_nothing(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be set aside stays; the others are taken."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    box.put("junk.json", b"junk\n")
    box.put("a.json")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        done = box.take()
    assert done.accepted == 1
    assert done.files_left == {"quarantine: No space left on device": 1}
    assert box.names() == {"junk.json"}
    assert list(box.kept.iterdir()) == []
    box.take()
    assert box.quarantined() == [b"junk\n"]


def test_a_broken_check_deletes_nothing(box: Box) -> None:
    """A batch that was not accepted is still there, whole."""
    for name in "abc":
        box.put(f"{name}.json")

    def breaks(*_: object) -> dict[str, object]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        accept_inbox(box.intake, box.inbox, box.kept, breaks)
    assert len(box.names()) == 3
    assert box.take() == InboxResult(3)


def test_more_than_a_batch(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches by number and by size count the same; files of lines are deleted once."""
    monkeypatch.setattr(taking, "BATCH", 3)
    lines = box.put("many.jsonl", b"\n".join([*box.sent[:5], b"junk\n", b""]))
    quiet(lines)
    for _ in range(5):
        next(box.free)
    box.put("a.json")
    monkeypatch.setattr(taking, "BATCH_BYTES", 600)
    box.put("b.json")
    done = box.take()
    assert (done.accepted, done.refused) == (7, {"unreadable": 1})
    assert box.names() == set()
