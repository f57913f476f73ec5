"""Where refused envelopes are kept: by the digest of their bytes, with the reason."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

from curvote.errors import UserError
from curvote.server.admission import Refused

# Whoever may send envelopes must not be able to fill the disk with refused ones.
MOST_FILES: Final = 10_000
MOST_BYTES: Final = 2**28


class Quarantine:
    """A folder of refused envelopes: at most 10,000 of them, and 256 MiB in all.

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

    def keep(self, data: bytes, refused: Refused) -> bool:
        """Keep an envelope and why it was refused; False where there is no room.

        Of one with a used invitation nothing is kept: it may be a copy of an accepted
        one, and even its digest would tell who sent that. Nor of a second one about a
        record: the intake promises to know one message of each.
        """
        if not refused.kept:
            return True
        name = hashlib.sha256(data).hexdigest()
        path = self.folder / f"{name}.json"
        if path.exists():
            return True
        if self._files >= MOST_FILES or self._bytes + len(data) > MOST_BYTES:
            return False
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        words = f"{refused.reason}: {refused}\n".encode("utf-8", "backslashreplace")
        self._write(path.with_name(f"{name}.reason.txt"), words)
        self._write(path, data)
        self._files += 1
        return True

    def _write(self, path: Path, data: bytes) -> None:
        """Write a file whole or not at all, for its owner only."""
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
