"""Inbox: a folder of envelopes that are accepted, quarantined or left."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from curvote.errors import UserError
from curvote.server.admission import BatchCheck, RefusedEnvelope
from curvote.server.inbox_files import (
    FileLeft,
    InboxFile,
    envelope_files,
    open_file,
    read_envelopes,
)
from curvote.server.intake import Intake
from curvote.server.quarantine import Quarantine

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
    with _open_folder(inbox) as folder:
        for name in envelope_files(folder):
            taking.read_file(folder, name)
        taking.flush()
    return taking.result


@contextmanager
def _open_folder(path: Path) -> Iterator[int]:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"the inbox {path}: {error.strerror or error}.") from None
    try:
        yield handle
    finally:
        os.close(handle)


@dataclass
class _SourceFile:
    """An inbox file; it stays where a part of it could not be kept."""

    file: InboxFile
    stays: bool = False


class _InboxRun:
    """A run over an inbox: files are read, accepted in batches, deleted."""

    def __init__(
        self, intake: Intake, quarantine: Quarantine, check: BatchCheck
    ) -> None:
        self._intake, self._quarantine, self._check = intake, quarantine, check
        self._waiting: list[tuple[_SourceFile, bytes]] = []
        self._bytes = 0
        self._finished: list[_SourceFile] = []
        self.result = InboxResult()

    def read_file(self, folder: int, name: str) -> None:
        """Read a file's envelopes; problems with it are counted."""
        with self._count_left(), open_file(folder, name) as (file, stream):
            source = _SourceFile(file)
            for data in read_envelopes(file, stream):
                self._add_envelope(source, data)
            self._finished.append(source)

    def _add_envelope(self, source: _SourceFile, data: bytes) -> None:
        self._waiting.append((source, data))
        self._bytes += len(data)
        if len(self._waiting) >= BATCH or self._bytes >= BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Accept the waiting envelopes, then delete the finished files."""
        secrets.SystemRandom().shuffle(self._waiting)
        envelopes = [data for _, data in self._waiting]
        outcomes = self._intake.take_batch(envelopes, self._check)
        for (source, data), refused in zip(self._waiting, outcomes, strict=True):
            if refused is None:
                self.result.accepted += 1
            else:
                self._quarantine_envelope(source, data, refused)
        for source in self._finished:
            if not source.stays:
                with self._count_left():
                    source.file.remove()
        self._waiting, self._finished, self._bytes = [], [], 0

    def _quarantine_envelope(
        self, source: _SourceFile, data: bytes, refused: RefusedEnvelope
    ) -> None:
        self.result.refused[refused.reason] += 1
        try:
            words = "" if self._quarantine.keep(data, refused) else "quarantine is full"
        except OSError as error:
            words = f"quarantine: {error.strerror or error}"
        if words:
            self.result.files_left[words] += 1
            source.stays = True

    @contextmanager
    def _count_left(self) -> Iterator[None]:
        try:
            yield
        except FileLeft as reason:
            self.result.files_left[str(reason)] += 1
