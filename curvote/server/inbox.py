"""A folder of envelopes: what is accepted leaves it, what is refused is set aside."""

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
from curvote.server.admission import Checks, Refused
from curvote.server.inbox_files import File, Left, envelopes, names, opened
from curvote.server.intake import Intake
from curvote.server.quarantine import Quarantine

# So many envelopes, or bytes of them, are accepted in one transaction.
BATCH: Final = 500
BATCH_BYTES: Final = 2**24


@dataclass
class Taken:
    """How many envelopes were accepted, refused (by reason), files left (by reason).

    Nothing is deleted but what was accepted, what is kept in the quarantine, and copies
    with a used invitation; all else is left.
    """

    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)


def take_all(intake: Intake, inbox: Path, quarantine: Path, checks: Checks) -> Taken:
    """Take every envelope in ``inbox``.

    ``*.json`` holds one envelope, ``*.jsonl`` one a line; other files stay. An accepted
    one is deleted; a refused one goes to ``quarantine``. What cannot be read, is no
    regular file, is too large or still being written stays and stops none of the
    others.
    """
    taking = _Taking(intake, Quarantine(quarantine), checks)
    with _folder(inbox) as folder:
        for name in names(folder):
            taking.take(folder, name)
        taking.flush()
    return taking.done


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"the inbox {path}: {error.strerror or error}.") from None
    try:
        yield handle
    finally:
        os.close(handle)


@dataclass
class _Source:
    """A file on its way; it stays where something of it could not be kept."""

    file: File
    stays: bool = False


class _Taking:
    """Envelopes on their way: read, then accepted in batches, then deleted."""

    def __init__(self, intake: Intake, quarantine: Quarantine, checks: Checks) -> None:
        self._intake, self._quarantine, self._checks = intake, quarantine, checks
        self._waiting: list[tuple[_Source, bytes]] = []
        self._bytes = 0
        self._ended: list[_Source] = []
        self.done = Taken()

    def take(self, folder: int, name: str) -> None:
        """Read a file; whatever is wrong with it is counted."""
        with self._leaving(), opened(folder, name) as (file, stream):
            source = _Source(file)
            for data in envelopes(file, stream):
                self._add(source, data)
            self._ended.append(source)

    def _add(self, source: _Source, data: bytes) -> None:
        self._waiting.append((source, data))
        self._bytes += len(data)
        if len(self._waiting) >= BATCH or self._bytes >= BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Accept what waits, then delete the files that are done with."""
        secrets.SystemRandom().shuffle(self._waiting)
        sent = [data for _, data in self._waiting]
        told = self._intake.take_batch(sent, self._checks)
        for (source, data), refused in zip(self._waiting, told, strict=True):
            if refused is None:
                self.done.accepted += 1
            else:
                self._refuse(source, data, refused)
        for source in self._ended:
            if not source.stays:
                with self._leaving():
                    source.file.remove()
        self._waiting, self._ended, self._bytes = [], [], 0

    def _refuse(self, source: _Source, data: bytes, refused: Refused) -> None:
        self.done.refused[refused.reason] += 1
        try:
            words = "" if self._quarantine.keep(data, refused) else "quarantine is full"
        except OSError as error:
            words = f"quarantine: {error.strerror or error}"
        if words:
            self.done.left[words] += 1
            source.stays = True

    @contextmanager
    def _leaving(self) -> Iterator[None]:
        try:
            yield
        except Left as left:
            self.done.left[str(left)] += 1
