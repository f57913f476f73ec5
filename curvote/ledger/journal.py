"""Release journals: append-only files that record a ledger's movements.

One line for each reservation and settlement, each with the head of the ledger's chain
at that moment, its place there, and the first link, which names the ledger and its
copies. The ledger writes first; what a killed process left unwritten here is added by
the next one. A ledger that lacks the head of a line is older than the line.

A **witness** stands outside the project, so that a snapshot that takes a whole folder
or machine back leaves it as it is. Several ledgers may write to one.
"""

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from curvote.base.durable import sync_folder
from curvote.base.errors import UserError
from curvote.ledger.queries import LedgerReader

# Lines of format 1 name neither their ledger nor a place in its chain.
JOURNAL_FORMAT: Final = 2
JournalLine = dict[str, Any]


def _write_all(stream: Any, data: bytes) -> None:
    """Write all data to a stream, and flush it to the disk."""
    while data:
        data = data[stream.write(data) :]
    os.fsync(stream.fileno())


@dataclass(frozen=True)
class Journal:
    """An append-only file of a ledger's movements."""

    path: Path
    description: str = "the witness of the ledger"

    def lines(self) -> list[JournalLine]:
        """Return the lines that can be read, oldest first; none where there is no file.

        UserError: it cannot be read, or a newer curvote wrote it.
        """
        with self._translate_errors():
            data = self.path.read_bytes() if self.exists() else b""
            return list(self._read_lines(data))

    def count_unreadable(self) -> int:
        """Return how many lines are half-written or altered.

        What the first told of, the next process tells again; of others nobody knows.
        """
        with self._translate_errors():
            data = self.path.read_bytes() if self.exists() else b""
            readable = sum(1 for _ in self._read_lines(data))
        return sum(1 for text in data.split(b"\n") if text.strip()) - readable

    def exists(self) -> bool:
        """Return whether the path exists."""
        return os.path.lexists(self.path)

    def catch_up(self, ledger: LedgerReader) -> int:
        """Append the ledger's movements that the file lacks; return how many.

        They are durable on return. What is there already is never changed. A file that
        cannot be written is a UserError. Its folder must be there: a disk that is not
        mounted is no new witness. So is one that tells of a release that this ledger
        does not know: of two copies that release at once, one is stopped here.
        """
        with self._translate_errors():
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
            handle = os.open(self.path, flags, 0o600)
            with os.fdopen(handle, "r+b", buffering=0) as stream:
                fcntl.flock(stream, fcntl.LOCK_EX)
                # First: the ledger knows by then what others add.
                content = stream.readall()
                moves, origin = ledger.movements(), ledger.origin()
                lines = list(self._read_lines(content))
                heads = {line["head"] for line in lines}
                about = {"format": JOURNAL_FORMAT, "ledger": origin}
                new = [asdict(m) | about for m in moves if m.head not in heads]
                if new:
                    text = "".join(json.dumps(line) + "\n" for line in new)
                    if content and not content.endswith(b"\n"):
                        text = f"\n{text}"  # the last to write was killed
                    _write_all(stream, text.encode())
                known_heads = {m.head for m in moves}
                for line in lines:
                    if (
                        line["head"] not in known_heads
                        and line.get("ledger") == origin
                        and not ledger.accepted_head(line["head"])
                    ):
                        raise UserError(
                            f"{self.path}, {self.description}: release"
                            f" {line['release']} is not in the ledger. Another copy of"
                            " it is in use, or it was put in place while a run went on."
                            " Nothing is released; the next run says what to do."
                        )
            sync_folder(self.path.parent)
        return len(new)

    def _read_lines(self, data: bytes) -> Iterator[JournalLine]:
        """Yield the complete lines of a journal's content."""
        for text in data.split(b"\n"):
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if not isinstance(line, dict):
                continue
            version = line.get("format", 1)
            if isinstance(version, int) and version > JOURNAL_FORMAT:
                raise UserError(
                    f"{self.path}, {self.description}: a newer curvote wrote it (format"
                    f" {version}, this one reads {JOURNAL_FORMAT}); update curvote."
                )
            if all(isinstance(line.get(name), str) for name in ("release", "head")):
                yield line

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            if self.exists() and not self.path.is_file():
                raise UserError(
                    f"{self.path}, {self.description}, is no plain file. Nothing is"
                    " released without it."
                )
            yield
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            why = "no space is left on its disk" if full else error.strerror or error
            raise UserError(
                f"{self.path}, {self.description}: {why}. Nothing is released without"
                " it."
            ) from error
