"""Watch over pipelines.yaml, which may be edited while `curvote serve` runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curvote.errors import UserError
from curvote.run.project import Project


@dataclass
class WatchedFile:
    """A file whose changes are reported once, after it has stood still.

    The first one is that it is there: it may have changed since somebody read it.
    """

    path: Path
    _reported_mark: tuple[int, ...] = ()
    _last_mark: tuple[int, ...] = ()

    def has_changed(self) -> bool:
        """Return whether the file changed since the last report and stood still."""
        mark = self._current_mark()
        still, self._last_mark = mark == self._last_mark, mark
        if not still or mark == self._reported_mark:
            return False
        self._reported_mark = mark
        return True

    def _current_mark(self) -> tuple[int, ...]:
        try:
            about = self.path.stat()
        except OSError:
            return ()
        return about.st_mtime_ns, about.st_size, about.st_ino


Schedules = dict[str, dict[str, Any]]


def read_schedules(project: Project) -> tuple[Schedules, dict[str, str]]:
    """Return a project's schedules, and the problems of faulty pipelines.

    UserError: the file itself cannot be read.
    """
    from curvote.run.config.file import PipelinesFile

    faulty: dict[str, UserError] = {}
    schedules = PipelinesFile(project).schedules(faulty)
    return schedules, {name: _first_problem(error) for name, error in faulty.items()}


def valid_schedules(schedules: Schedules, faulty: dict[str, str]) -> Schedules:
    """Return the schedules that fire; the others are added to ``faulty``."""
    from curvote.flows.serving.firing import check_schedules

    valid = {}
    for name, settings in schedules.items():
        try:
            check_schedules({name: settings})
        except UserError as error:
            faulty[name] = _first_problem(error)
        else:
            valid[name] = settings
    return valid


def _first_problem(error: UserError) -> str:
    """Return the first problem in one line, and the number of further ones."""
    first = error.problems[0].message.splitlines()[0].rstrip(".")
    more = len(error.problems) - 1
    return f"{first} (and {more} more)" if more else first
