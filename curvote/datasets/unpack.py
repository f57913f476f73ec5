"""The bytes of a published file, gzipped or not; damage gets a message of its own."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from curvote.errors import UserError

_GZIP_MAGIC = b"\x1f\x8b"


class DamagedError(UserError):
    """The bytes cannot be read at all: empty, truncated, or a wrong checksum."""


def read(path: Path) -> bytes:
    """Return the decompressed bytes of ``path``; gzip is known by its first bytes.

    Raises:
        DamagedError: no such file, no bytes, or a broken gzip stream.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DamagedError(f"{path} cannot be read: {error.strerror}.") from error
    if data.startswith(_GZIP_MAGIC):
        data = _decompress(path, data)
    if not data:
        raise _damaged(path, "is empty.")
    return data


def _decompress(path: Path, data: bytes) -> bytes:
    try:
        return gzip.decompress(data)
    except EOFError as error:
        raise _damaged(path, "is truncated: its gzip stream breaks off.") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise _damaged(path, f"is damaged: {error}.") from error


def _damaged(path: Path, problem: str) -> DamagedError:
    return DamagedError(
        f"{path} {problem} Replace it, or remove it and fetch it again."
    )
