"""pipelines.yaml, which somebody may edit while `curvote serve` runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curvote.run.project import Project


@dataclass
class WatchedFile:
    """Says once for each change that a file has changed, and then stood still.

    The first one is that it is there: it may have changed since somebody read it.
    """

    path: Path
    _known: tuple[int, ...] = ()
    _seen: tuple[int, ...] = ()

    def has_changed(self) -> bool:
        """Whether it is another than at the last change; twice the same is no edit."""
        mark = self._mark()
        still, self._seen = mark == self._seen, mark
        if not still or mark == self._known:
            return False
        self._known = mark
        return True

    def _mark(self) -> tuple[int, ...]:
        try:
            about = self.path.stat()
        except OSError:
            return ()
        return about.st_mtime_ns, about.st_size, about.st_ino


def read_schedules(project: Project) -> dict[str, dict[str, Any]]:
    """Return the schedules of a project's file; UserError: one cannot be."""
    from curvote.flows.serving.firing import check
    from curvote.run.config.file import PipelinesFile

    schedules = PipelinesFile(project).schedules()
    check(schedules)
    return schedules
