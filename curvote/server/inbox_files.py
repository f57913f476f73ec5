"""Inbox: a folder of envelopes that are accepted, quarantined or left."""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Final

from curvote.envelope import LARGEST_FILE

# A file that nobody has changed for so long (seconds) is not being written any more.
QUIET_SECONDS: Final = 2.0
# So many times the largest envelope is skipped where a line is longer.
MAX_SKIPPED: Final = 64
_OPENING: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileLeft(Exception):  # noqa: N818 - what happens to a file
    """Error for a file that stays in the inbox; its text is the reason."""


@dataclass(frozen=True)
class InboxFile:
    """An opened file of the inbox, as it was when it was opened."""

    folder: int
    name: str
    opened: os.stat_result

    @property
    def is_quiet(self) -> bool:
        """Whether the file was not written lately, by its time."""
        return abs(time.time() - self.opened.st_mtime) >= QUIET_SECONDS

    def remove(self) -> None:
        """Delete the file; `FileLeft` if it changed or cannot be deleted."""
        with _translate_errors():
            now = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
            if _file_identity(now) != _file_identity(self.opened):
                raise FileLeft("changed while it was read")
            os.unlink(self.name, dir_fd=self.folder)


def envelope_files(folder: int) -> list[str]:
    """Return the names of the envelope files in a folder, in random order.

    The order of acceptance then says nothing. A name that begins with a dot belongs to
    whoever is still writing, and will rename it.
    """
    names = [
        name
        for name in os.listdir(folder)
        if name.endswith((".json", ".jsonl")) and not name.startswith(".")
    ]
    secrets.SystemRandom().shuffle(names)
    return names


@contextmanager
def open_file(folder: int, name: str) -> Iterator[tuple[InboxFile, BinaryIO]]:
    """Open a regular file with one link; else `FileLeft`."""
    with _translate_errors():
        _refuse_irregular(os.stat(name, dir_fd=folder, follow_symlinks=False))
        handle = os.open(name, _OPENING, dir_fd=folder)
        with os.fdopen(handle, "rb") as stream:
            status = os.fstat(handle)
            _refuse_irregular(status)  # it may have been replaced in between
            yield InboxFile(folder, name, status), stream


def read_envelopes(file: InboxFile, stream: BinaryIO) -> Iterator[bytes]:
    """Yield the envelopes in a file: one, or one for each line of ``*.jsonl``.

    An envelope ends with its only line feed: one without is still being written,
    unless the file is quiet. More lines may follow until it is. `FileLeft`: so, or an
    envelope that is larger than any; of that at most one byte too many is read.
    """
    if file.name.endswith(".jsonl"):
        if not file.is_quiet:
            raise FileLeft("still being written")
        yield from _read_lines(stream)
        return
    data = stream.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise FileLeft("too large")
    if not data.endswith(b"\n") and not file.is_quiet:
        raise FileLeft("still being written")
    yield data


def _read_lines(stream: BinaryIO) -> Iterator[bytes]:
    too_long = False
    while line := stream.readline(LARGEST_FILE + 1):
        if len(line) > LARGEST_FILE:
            too_long = True
            _skip_line(stream)
        elif line.strip():
            yield line
    if too_long:
        raise FileLeft("too large")


def _skip_line(stream: BinaryIO) -> None:
    """Read on to the end of a line that is too long."""
    for _ in range(MAX_SKIPPED):
        if (stream.readline(LARGEST_FILE) or b"\n").endswith(b"\n"):
            return
    raise FileLeft("too large")


def _refuse_irregular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        raise FileLeft("no regular file of its own")


def _file_identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate errors of the disk into `FileLeft`, without names."""
    try:
        yield
    except FileNotFoundError:
        raise FileLeft("gone meanwhile") from None
    except OSError as error:
        raise FileLeft(f"{error.strerror or 'unreadable'}".lower()) from None
