"""Reading a folder that others write into: no name, no file and no size is trusted."""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Final

from curvote.envelope import LARGEST

# A file that nobody has changed for so long (seconds) is not being written any more.
QUIET: Final = 2.0
# So many times the largest envelope is skipped where a line is longer.
SKIPPED: Final = 64
_OPENING: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Left(Exception):  # noqa: N818 - what happens to a file
    """A file stays where it is; the words say why."""


@dataclass(frozen=True)
class File:
    """A file as it was when it was opened; ``folder`` is the handle of its folder."""

    folder: int
    name: str
    opened: os.stat_result

    @property
    def quiet(self) -> bool:
        """Whether nobody was writing it lately; a clock may be wrong either way."""
        return abs(time.time() - self.opened.st_mtime) >= QUIET

    def remove(self) -> None:
        """Delete the file; `Left` where it is another one by now, or cannot be."""
        with _words():
            now = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
            if _identity(now) != _identity(self.opened):
                raise Left("changed while it was read")
            os.unlink(self.name, dir_fd=self.folder)


def names(folder: int) -> list[str]:
    """Return the names of the envelope files in a folder, in random order.

    The order of acceptance then says nothing. A name that begins with a dot belongs to
    whoever is still writing, and will rename it.
    """
    found = [
        name
        for name in os.listdir(folder)
        if name.endswith((".json", ".jsonl")) and not name.startswith(".")
    ]
    secrets.SystemRandom().shuffle(found)
    return found


@contextmanager
def opened(folder: int, name: str) -> Iterator[tuple[File, BinaryIO]]:
    """Open a regular file with one name, following no link; else `Left`."""
    with _words():
        _refuse_odd(os.stat(name, dir_fd=folder, follow_symlinks=False))
        handle = os.open(name, _OPENING, dir_fd=folder)
        with os.fdopen(handle, "rb") as stream:
            found = os.fstat(handle)
            _refuse_odd(found)  # it may have been replaced in between
            yield File(folder, name, found), stream


def envelopes(file: File, stream: BinaryIO) -> Iterator[bytes]:
    """Yield what a file holds: one envelope, or in ``*.jsonl`` one a line.

    An envelope ends with its only line feed: one without is still being written,
    unless the file is quiet. More lines may follow until it is. `Left`: so, or an
    envelope that is larger than any; of that at most one byte too many is read.
    """
    if file.name.endswith(".jsonl"):
        if not file.quiet:
            raise Left("still being written")
        yield from _lines(stream)
        return
    data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise Left("too large")
    if not data.endswith(b"\n") and not file.quiet:
        raise Left("still being written")
    yield data


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    long = False
    while line := stream.readline(LARGEST + 1):
        if len(line) > LARGEST:
            long = True
            _skip(stream)
        elif line.strip():
            yield line
    if long:
        raise Left("too large")


def _skip(stream: BinaryIO) -> None:
    """Read on to the end of a line; one without an end would take for ever."""
    for _ in range(SKIPPED):
        if (stream.readline(LARGEST) or b"\n").endswith(b"\n"):
            return
    raise Left("too large")


def _refuse_odd(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        raise Left("no regular file of its own")


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def _words() -> Iterator[None]:
    """Say what the disk says, and never a name that was sent."""
    try:
        yield
    except FileNotFoundError:
        raise Left("gone meanwhile") from None
    except OSError as error:
        raise Left(f"{error.strerror or 'unreadable'}".lower()) from None
