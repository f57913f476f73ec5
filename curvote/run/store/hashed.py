"""Files of tables: streams that compute their digest, and Parquet from blocks."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from curvote.durable import file_mode


class HashingFile:
    """A new file that hashes what is written, and is durable when it is closed.

    ``bytes`` and ``sha256`` are those of all that was written. After an error it takes
    no more: a writer that ends itself later shall neither write nor fail again.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        self._handle = os.open(path, flags, file_mode(path.parent))
        self._digest, self.bytes = hashlib.sha256(), 0
        self.closed = False

    @property
    def sha256(self) -> str:
        """The digest of what was written, in hexadecimal."""
        return self._digest.hexdigest()

    def write(self, data: bytes) -> int:
        """Write all of ``data`` and return how many bytes that are."""
        if not self.closed:
            self._digest.update(data)
            self._write_all(data)
            self.bytes += len(data)
        return len(data)

    def _write_all(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._handle, rest) :]

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def close(self) -> None:
        """Do nothing: the file is closed with its block."""

    def __enter__(self) -> HashingFile:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        self.closed = True
        try:
            if not failed:
                os.fsync(self._handle)
        finally:
            os.close(self._handle)
