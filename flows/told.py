"""Whom `curvote serve` tells of what happens to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flows.lines import line


@dataclass
class Told:
    """What the supervisor tells others of: lines, notices, metrics."""

    line: Callable[[dict[str, Any]], None]
    missed: Callable[[str, dict[str, Any]], None]
    restarted: Callable[[str], None] = lambda _child: None

    def say(self, text: str, level: str = "info") -> None:
        """Say a line of its own."""
        self.line(line(text, level))
