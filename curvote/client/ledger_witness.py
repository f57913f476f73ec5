"""Append-only files that tell what a ledger knew: nothing of it is ever changed.

One line for each reservation and settlement, each with the head of the ledger's chain
at that moment, its place there, and the first link, which names the ledger and its
copies. The ledger writes first; what a killed process left unwritten here is added by
the next one. A ledger that lacks the head of a line is older than the line.

A **witness** stands outside the project, so that a snapshot that takes a whole folder
or machine back leaves it as it is. Several ledgers may write to one.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from curvote.client.ledger_reading import LedgerReader
from curvote.durable import sync_folder
from curvote.errors import UserError

# Lines of format 1 name neither their ledger nor a place in its chain.
FORMAT: Final = 2
Line = dict[str, Any]


@dataclass(frozen=True)
class Witness:
    """The append-only file ``path``; ``called`` is what a message calls it."""

    path: Path
    called: str = "the witness of the ledger"

    def lines(self) -> list[Line]:
        """Return the lines that can be read, oldest first; none where there is no file.

        UserError: it cannot be read, or a newer curvote wrote it.
        """
        with self._errors():
            return list(self._read(self.path.read_bytes())) if self.exists() else []

    def torn(self) -> int:
        """Return how many lines cannot be read: half-written ones, or altered ones.

        What the first told of, the next process tells again; of others nobody knows.
        """
        with self._errors():
            data = self.path.read_bytes() if self.exists() else b""
            whole = sum(1 for _ in self._read(data))
        return sum(1 for text in data.split(b"\n") if text.strip()) - whole

    def exists(self) -> bool:
        """Say whether there is anything of that name."""
        return os.path.lexists(self.path)

    def catch_up(self, ledger: LedgerReader) -> int:
        """Add what the ledger knows and the file does not; return how many lines.

        They are durable on return. What is there already is never changed. A file that
        cannot be written is a UserError. Its folder must be there: a disk that is not
        mounted is no new witness. So is one that tells of a release that this ledger
        does not know: of two copies that release at once, one is stopped here.
        """
        with self._errors():
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
            handle = os.open(self.path, flags, 0o600)
            with os.fdopen(handle, "r+b", buffering=0) as stream:
                fcntl.flock(stream, fcntl.LOCK_EX)
                added = self._append(stream, ledger)
            sync_folder(self.path.parent)
        return added

    def _append(self, stream: Any, ledger: LedgerReader) -> int:
        there = stream.readall()  # first: the ledger knows by then what others add
        moves = ledger.movements()
        lines = list(self._read(there))
        known = {line["head"] for line in lines}
        about = {"format": FORMAT, "ledger": ledger.origin()}
        new = [asdict(m) | about for m in moves if m.head not in known]
        if new:
            text = "".join(json.dumps(line) + "\n" for line in new)
            torn = there and not there.endswith(b"\n")  # the last to write was killed
            _write(stream, ("\n" * bool(torn) + text).encode())
        mine = {m.head for m in moves}
        self._refuse_unknown([e for e in lines if e["head"] not in mine], ledger)
        return len(new)

    def _refuse_unknown(self, lines: Sequence[Line], ledger: LedgerReader) -> None:
        origin = ledger.origin()
        for line in lines:
            if line.get("ledger") == origin and not ledger.told_of(line["head"]):
                raise UserError(
                    f"{self.path}, {self.called}: release {line['release']} is not in"
                    " the ledger. Another copy of it is in use, or it was put in place"
                    " while a run went on. Nothing is released; the next run says what"
                    " to do."
                )

    def _read(self, data: bytes) -> Iterator[Line]:
        """Yield the whole lines; a killed process may have left a torn one."""
        for text in data.split(b"\n"):
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if not isinstance(line, dict):
                continue
            if isinstance(found := line.get("format", 1), int) and found > FORMAT:
                raise UserError(
                    f"{self.path}, {self.called}: a newer curvote wrote it (format"
                    f" {found}, this one reads {FORMAT}); update curvote."
                )
            if all(isinstance(line.get(name), str) for name in ("release", "head")):
                yield line

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            if self.exists() and not self.path.is_file():
                raise UserError(
                    f"{self.path}, {self.called}, is no plain file. Nothing is released"
                    " without it."
                )
            yield
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            why = "no space is left on its disk" if full else error.strerror or error
            raise UserError(
                f"{self.path}, {self.called}: {why}. Nothing is released without it."
            ) from error


def _write(stream: Any, data: bytes) -> None:
    """Write all of it, durably: a disk that fills up may take a part only."""
    while data:
        data = data[stream.write(data) :]
    os.fsync(stream.fileno())
