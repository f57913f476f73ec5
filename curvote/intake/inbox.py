"""Inbox: a folder of envelopes that are accepted, quarantined or left."""

import hashlib
import os
import secrets
import stat
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from curvote.base.errors import UserError
from curvote.intake.admission import BatchCheck, RefusedEnvelope
from curvote.intake.box import Intake
from curvote.wire.envelope import LARGEST_ENVELOPE

# A file that nobody has changed for so long (seconds) is not being written any more.
QUIET_SECONDS: Final = 2.0
# So many times the largest envelope is skipped where a line is longer.
MAX_SKIPPED: Final = 64
_OPENING: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileLeft(Exception):  # noqa: N818 - what happens to a file
    """Error for a file that stays in the inbox; its text is the reason."""


@dataclass
class InboxFile:
    """An opened file of the inbox, as it was when it was opened.

    It ``stays`` where a part of it could not be kept.
    """

    folder: int
    name: str
    opened: os.stat_result
    stays: bool = False

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


def read_envelopes(file: InboxFile, stream: BinaryIO) -> Iterator[bytes]:
    """Yield the envelopes in a file: one, or one for each line of ``*.jsonl``.

    An envelope ends with its only line feed: one without is still being written,
    unless the file is quiet. More lines may follow until it is. `FileLeft`: so, or an
    envelope that is larger than any; of that at most one byte too many is read.
    """
    if file.name.endswith(".jsonl"):
        if not file.is_quiet:
            raise FileLeft("still being written")
        too_long = False
        while line := stream.readline(LARGEST_ENVELOPE + 1):
            if len(line) > LARGEST_ENVELOPE:
                too_long = True
                for _ in range(MAX_SKIPPED):  # read on to the line's end
                    if (stream.readline(LARGEST_ENVELOPE) or b"\n").endswith(b"\n"):
                        break
                else:
                    raise FileLeft("too large")
            elif line.strip():
                yield line
        if too_long:
            raise FileLeft("too large")
        return
    data = stream.read(LARGEST_ENVELOPE + 1)
    if len(data) > LARGEST_ENVELOPE:
        raise FileLeft("too large")
    if not data.endswith(b"\n") and not file.is_quiet:
        raise FileLeft("still being written")
    yield data


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


# Whoever may send envelopes must not be able to fill the disk with refused ones.
MAX_FILES: Final = 10_000
MAX_BYTES: Final = 2**28


class Quarantine:
    """A folder of refused envelopes: at most 10,000 files and 256 MiB.

    Names are made here: one that was sent may be too long, or made to be run by a tool.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = self._bytes = 0
        try:
            for path in folder.glob("*"):
                self._files += path.suffix == ".json"
                self._bytes += path.lstat().st_size
        except OSError as error:
            raise UserError(f"the quarantine {folder}: {error.strerror}.") from None

    def keep(self, data: bytes, refused: RefusedEnvelope) -> bool:
        """Store an envelope and its reason; False where there is no room.

        Of one with a used invitation nothing is kept: it may be a copy of an accepted
        one, and even its digest would tell who sent that. Nor of a second one about a
        record: the intake promises to know one message of each.
        """
        if not refused.storable:
            return True
        name = hashlib.sha256(data).hexdigest()
        path = self.folder / f"{name}.json"
        if path.exists():
            return True
        if self._files >= MAX_FILES or self._bytes + len(data) > MAX_BYTES:
            return False
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        words = f"{refused.reason}: {refused}\n".encode("utf-8", "backslashreplace")
        self._write_file(path.with_name(f"{name}.reason.txt"), words)
        self._write_file(path, data)
        self._files += 1
        return True

    def _write_file(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.unlink(missing_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        self._bytes += len(data)


# So many envelopes, or bytes of them, are accepted in one transaction.
BATCH: Final = 500
BATCH_BYTES: Final = 2**24


@dataclass
class InboxResult:
    """Counts of accepted and refused envelopes, and of files left.

    Nothing is deleted but what was accepted, what is kept in the quarantine, and copies
    with a used invitation; all else is left.
    """

    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    files_left: Counter[str] = field(default_factory=Counter)


def accept_inbox(
    intake: Intake, inbox: Path, quarantine: Path, check: BatchCheck
) -> InboxResult:
    """Accept every envelope in ``inbox``, and quarantine refused ones.

    ``*.json`` holds one envelope, ``*.jsonl`` one a line; other files stay. An accepted
    one is deleted; a refused one goes to ``quarantine``. What cannot be read, is no
    regular file, is too large or still being written stays and stops none of the
    others.
    """
    taking = _InboxRun(intake, Quarantine(quarantine), check)
    try:
        folder = os.open(inbox, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"the inbox {inbox}: {error.strerror or error}.") from None
    try:
        # In random order, which says nothing of that of acceptance. A name that begins
        # with a dot belongs to whoever is still writing, and will rename it.
        every = os.listdir(folder)  # noqa: PTH208 - it is a descriptor
        visible = (name for name in every if not name.startswith("."))
        names = [name for name in visible if name.endswith((".json", ".jsonl"))]
        secrets.SystemRandom().shuffle(names)
        for name in names:
            taking.read_file(folder, name)
        taking.flush()
    finally:
        os.close(folder)
    return taking.result


class _InboxRun:
    """A run over an inbox: files are read, accepted in batches, deleted."""

    def __init__(
        self, intake: Intake, quarantine: Quarantine, check: BatchCheck
    ) -> None:
        self._intake, self._quarantine, self._check = intake, quarantine, check
        self._waiting: list[tuple[InboxFile, bytes]] = []
        self._bytes = 0
        self._finished: list[InboxFile] = []
        self.result = InboxResult()

    def read_file(self, folder: int, name: str) -> None:
        """Read a file's envelopes; problems with it are counted."""
        with self._count_left(), _translate_errors():
            _refuse_irregular(os.stat(name, dir_fd=folder, follow_symlinks=False))
            handle = os.open(name, _OPENING, dir_fd=folder)
            with os.fdopen(handle, "rb") as stream:
                status = os.fstat(handle)
                _refuse_irregular(status)  # it may have been replaced in between
                file = InboxFile(folder, name, status)
                for data in read_envelopes(file, stream):
                    self._waiting.append((file, data))
                    self._bytes += len(data)
                    if len(self._waiting) >= BATCH or self._bytes >= BATCH_BYTES:
                        self.flush()
                self._finished.append(file)

    def flush(self) -> None:
        """Accept the waiting envelopes, then delete the finished files."""
        secrets.SystemRandom().shuffle(self._waiting)
        envelopes = [data for _, data in self._waiting]
        outcomes = self._intake.take_batch(envelopes, self._check)
        for (file, data), refused in zip(self._waiting, outcomes, strict=True):
            if refused is None:
                self.result.accepted += 1
                continue
            self.result.refused[refused.reason] += 1
            try:
                is_kept = self._quarantine.keep(data, refused)
                words = "" if is_kept else "quarantine is full"
            except OSError as error:
                words = f"quarantine: {error.strerror or error}"
            if words:
                self.result.files_left[words] += 1
                file.stays = True
        for file in self._finished:
            if not file.stays:
                with self._count_left():
                    file.remove()
        self._waiting, self._finished, self._bytes = [], [], 0

    @contextmanager
    def _count_left(self) -> Iterator[None]:
        try:
            yield
        except FileLeft as reason:
            self.result.files_left[str(reason)] += 1
