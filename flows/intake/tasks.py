"""The signed tasks of a pipeline, by the digests that invitations name."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from curvote.errors import UserError
from curvote.run.release.publishing import digests

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Document:
    """A published task: its bytes never change, so neither does its tag."""

    data: bytes
    tag: str


class Published:
    """The folder where a pipeline's tasks are published, read again as it changes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[Path, tuple[int, dict[str, Document]]] = {}

    def find(self, digest: str) -> Document | None:
        """Return the document with the task of a digest, if it is published."""
        if not _DIGEST.fullmatch(digest):
            return None
        for path in sorted(self._folder.glob("*.task.json")):
            found = self._read(path).get(digest)
            if found is not None:
                return found
        return None

    def _read(self, path: Path) -> dict[str, Document]:
        try:
            changed = path.stat().st_mtime_ns
            if path not in self._known or self._known[path][0] != changed:
                self._known[path] = changed, _documents(path.read_bytes())
        except (OSError, UserError):
            return {}  # being written, or none of ours
        return self._known[path][1]


def _documents(data: bytes) -> dict[str, Document]:
    """Return a document under the digest of its task, and of each sender's part."""
    document = Document(data, f'"{hashlib.sha256(data).hexdigest()}"')
    return dict.fromkeys(digests(data), document)
