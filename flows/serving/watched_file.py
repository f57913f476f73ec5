"""pipelines.yaml, which somebody may edit while `curvote serve` runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curvote.errors import UserError
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


Schedules = dict[str, dict[str, Any]]


def read_schedules(project: Project) -> tuple[Schedules, dict[str, str]]:
    """Return the schedules of a project's file, and what is wrong with which pipeline.

    UserError: the file itself cannot be read.
    """
    from curvote.run.config.file import PipelinesFile

    faulty: dict[str, UserError] = {}
    schedules = PipelinesFile(project).schedules(faulty)
    return schedules, {name: _first(error) for name, error in faulty.items()}


def sound(schedules: Schedules, faulty: dict[str, str]) -> Schedules:
    """Return the schedules that fire; the others are put among ``faulty``."""
    from curvote.flows.serving.firing import check

    found = {}
    for name, settings in schedules.items():
        try:
            check({name: settings})
        except UserError as error:
            faulty[name] = _first(error)
        else:
            found[name] = settings
    return found


def _first(error: UserError) -> str:
    """Return the first problem in one line, and how many more there are."""
    first = error.problems[0].message.splitlines()[0].rstrip(".")
    more = len(error.problems) - 1
    return f"{first} (and {more} more)" if more else first
