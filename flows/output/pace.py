"""How fast a stage goes, and how long it will still take."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

# How far the run of this process is, for whoever asks meanwhile.
FIGURES = {
    "blocks_done": "Blocks that are done of the stage under way.",
    "blocks": "Blocks of the stage under way.",
    "remaining_seconds": "How long the stage under way still takes at this pace.",
}
current: dict[str, Any] = {}


@dataclass
class Pace:
    """Counts from the first look: blocks that an earlier run left are no pace."""

    _started: float = field(default_factory=time.monotonic)
    _first: int | None = None

    def note(self, done: int) -> None:
        """Take note of how many blocks are done."""
        if self._first is None:
            self._first = done

    def rate(self, done: int) -> float | None:
        """Return the blocks a second so far; None: nothing to go by yet."""
        self.note(done)
        made, spent = done - (self._first or 0), time.monotonic() - self._started
        return made / spent if made > 0 and spent > 0 else None

    def remaining(self, done: int, blocks: int) -> float | None:
        """Return the seconds until all blocks are done, at the pace so far."""
        rate = self.rate(done)
        return None if rate is None else (blocks - done) / rate

    def show(self, stage: str, done: int, blocks: int) -> None:
        """Let `current` say how far a stage is."""
        left = self.remaining(done, blocks)
        at = {"stage": stage, "blocks_done": done, "blocks": blocks}
        current.clear()
        current.update(at if left is None else at | {"remaining_seconds": left})

    def words(self, done: int, blocks: int) -> str:
        """Return rate and remaining time for a user; nothing before there is one."""
        rate, left = self.rate(done), self.remaining(done, blocks)
        if rate is None or left is None:
            return ""
        return f"{rate:.3g}/s, about {_span(left)} left"

    def figures(self, done: int, blocks: int) -> dict[str, Any]:
        """Return rate and remaining time for a program."""
        found = {"rate": self.rate(done), "remaining": self.remaining(done, blocks)}
        return {name: None if v is None else round(v, 3) for name, v in found.items()}


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
