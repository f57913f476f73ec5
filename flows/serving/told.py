"""Supervisor of `curvote serve`, which keeps server and runner alive."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from curvote.flows.output.lines import make_line


@dataclass
class Announcer:
    """The outlets of the supervisor: lines, notices and metrics."""

    line: Callable[[dict[str, Any]], None]
    missed: Callable[[str, dict[str, Any]], None]
    restarted: Callable[[str], None] = lambda _child: None
    _refused: set[str] = field(default_factory=set)

    def announce(
        self, text: str, level: str = "info", pipeline: str | None = None
    ) -> None:
        """Announce a line of the service itself."""
        self.line(make_line(text, level, pipeline=pipeline))

    def run_each(self, looks: Iterable[Callable[[], None]]) -> None:
        """Call each function; a system error is announced once, and work goes on."""
        refused = {why for look in looks if (why := _system_error(look))}
        for why in sorted(refused - self._refused):
            self.announce(f"{why}; it is tried again (see `curvote doctor`)", "error")
        self._refused = refused


def _system_error(look: Callable[[], None]) -> str:
    try:
        look()
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror or error}"
    return ""
