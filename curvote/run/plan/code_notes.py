"""What parsing a file of code gave, kept among a project's state.

To parse a hundred files takes longer than all else that a plan does. A note counts only
for the very file, by its inode, its size and both of its times, and for the same way of
parsing under the same Python.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

Parsed = tuple[str, tuple[str, ...]]


@dataclass
class Notes:
    """The notes in a file, None: nowhere; ``new`` are those still to be written."""

    file: Path | None = None
    known: dict[str, Any] = field(default_factory=dict)
    new: bool = False

    def open(self, file: Path) -> None:
        """Go on with the notes in a file, if it has any that count."""
        if file == self.file:
            return
        self.file, self.new = file, False
        self.known = {}
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            told = json.loads(file.read_text(encoding="utf-8"))
            self.known = dict(told["files"]) if told["by"] == _by() else {}

    def find(self, path: Path) -> Parsed | None:
        """Return digest and imports of a file as they were noted; None where not."""
        found = self.known.get(str(path))
        if found is None or found[0] != _stamp(path):
            return None
        return str(found[1]), tuple(found[2])

    def add(self, path: Path, digest: str, imports: tuple[str, ...]) -> None:
        """Remember what parsing a file gave, until `keep` writes it down."""
        self.known[str(path)] = [_stamp(path), digest, list(imports)]
        self.new = True

    def keep(self) -> None:
        """Write the notes down, where there are new ones and a folder to take them."""
        if self.file is None or not self.new:
            return
        self.new = False
        temporary = self.file.with_name(f".{self.file.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            temporary.write_text(json.dumps({"by": _by(), "files": self.known}))
            temporary.replace(self.file)


NOTES = Notes()


@cache
def _by() -> list[Any]:
    """Return what a note depends on beside the file: Python, and how it is parsed."""
    here = Path(__file__)
    return [sys.version, _stamp(here), _stamp(here.with_name("fingerprint.py"))]


def _stamp(path: Path) -> list[int]:
    found = path.stat()
    return [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
