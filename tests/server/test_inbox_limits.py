"""The inbox under faults: what is too large, too much, forbidden or broken."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curvote.intake import inbox
from curvote.intake import inbox as taking
from curvote.intake.inbox import InboxResult, accept_inbox
from curvote.wire.envelope import LARGEST_ENVELOPE
from tests.boxes import Box
from tests.rounds import quiet


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    """Return an inbox with a round of eight."""
    made = Box(tmp_path)
    with made.intake:
        yield made


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

    whole = inbox.read_envelopes
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
    monkeypatch.setattr(inbox, "MAX_SKIPPED", 3)
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
    monkeypatch.setattr(inbox, "MAX_FILES", 3)
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
    monkeypatch.setattr(inbox, "MAX_FILES", 100)
    monkeypatch.setattr(inbox, "MAX_BYTES", 900)
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
