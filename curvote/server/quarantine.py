"""Quarantine: a folder of refused envelopes by digest, with the reasons."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

from curvote.errors import UserError
from curvote.server.admission import RefusedEnvelope

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
        """Write a private file atomically."""
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
