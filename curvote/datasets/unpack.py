"""Decompression of published files, gzipped or not."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from curvote.errors import UserError

BLOCK = 1 << 22
_GZIP_MAGIC = b"\x1f\x8b"


class DamagedError(UserError):
    """The bytes cannot be read at all: empty, truncated, or a wrong checksum."""


def read(path: Path) -> bytes:
    """Return the decompressed bytes of ``path``; gzip is known by its first bytes.

    Raises:
        DamagedError: no such file, no bytes, or a broken gzip stream.
    """
    return b"".join(blocks(path))


def blocks(path: Path) -> Iterator[bytes]:
    """Yield the decompressed bytes of ``path`` in blocks, as `read` joins them."""
    empty = True
    for block in _decompressed_blocks(path):
        empty = False
        yield block
    if empty:
        raise _damaged_error(path, "is empty.")


def _decompressed_blocks(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as stream:
            zipped = stream.read(2) == _GZIP_MAGIC
            stream.seek(0)
            source = gzip.GzipFile(fileobj=stream) if zipped else stream
            while block := source.read(BLOCK):
                yield block
    except EOFError as error:
        raise _damaged_error(
            path, "is truncated: its gzip stream breaks off."
        ) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise _damaged_error(path, f"is damaged: {error}.") from error
    except OSError as error:
        raise DamagedError(f"{path} cannot be read: {error.strerror}.") from error


def _damaged_error(path: Path, problem: str) -> DamagedError:
    return DamagedError(
        f"{path} {problem} Replace it, or remove it and fetch it again."
    )
