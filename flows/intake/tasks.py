"""Service of the intake: published tasks go out, envelopes come in, over HTTP."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from curvote.errors import UserError
from curvote.run.release.publishing import task_digests

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class TaskDocument:
    """A published task, whose bytes and tag never change."""

    data: bytes
    tag: str


class PublishedTasks:
    """The folder of a pipeline's published tasks, read again as it changes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._documents_by_path: dict[Path, tuple[int, dict[str, TaskDocument]]] = {}

    def find(self, digest: str) -> TaskDocument | None:
        """Return the document with the task of a digest, if it is published."""
        if not _DIGEST.fullmatch(digest):
            return None
        for path in sorted(self._folder.glob("*.task.json")):
            document = self._read_file(path).get(digest)
            if document is not None:
                return document
        return None

    def _read_file(self, path: Path) -> dict[str, TaskDocument]:
        try:
            changed = path.stat().st_mtime_ns
            if (
                path not in self._documents_by_path
                or self._documents_by_path[path][0] != changed
            ):
                self._documents_by_path[path] = (
                    changed,
                    _documents_by_digest(path.read_bytes()),
                )
        except (OSError, UserError):
            return {}  # being written, or none of ours
        return self._documents_by_path[path][1]


def _documents_by_digest(data: bytes) -> dict[str, TaskDocument]:
    """Return a document under the digests of its task and of its parts."""
    document = TaskDocument(data, f'"{hashlib.sha256(data).hexdigest()}"')
    return dict.fromkeys(task_digests(data), document)
