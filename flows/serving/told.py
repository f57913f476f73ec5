"""Whom `curvote serve` tells of what happens to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from curvote.flows.output.lines import line


@dataclass
class Told:
    """What the supervisor tells others of: lines, notices, metrics."""

    line: Callable[[dict[str, Any]], None]
    missed: Callable[[str, dict[str, Any]], None]
    restarted: Callable[[str], None] = lambda _child: None
    _refused: set[str] = field(default_factory=set)

    def say(self, text: str, level: str = "info", pipeline: str | None = None) -> None:
        """Say a line of its own."""
        self.line(line(text, level, pipeline=pipeline))

    def of_each(self, looks: Iterable[Callable[[], None]]) -> None:
        """Do each; what a full disk or the system refuses is said once and goes on."""
        refused = {why for look in looks if (why := _refusal(look))}
        for why in sorted(refused - self._refused):
            self.say(f"{why}; it is tried again (see `curvote doctor`)", "error")
        self._refused = refused


def _refusal(look: Callable[[], None]) -> str:
    try:
        look()
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror or error}"
    return ""
