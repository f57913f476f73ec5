"""Progress of a run: pace, bars on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

# How far the run of this process is, for whoever asks meanwhile.
PROGRESS_METRICS = {
    "blocks_done": "Blocks that are done of the stage under way.",
    "blocks": "Blocks of the stage under way.",
    "remaining_seconds": "How long the stage under way still takes at this pace.",
}
current_progress: dict[str, Any] = {}


@dataclass
class StagePace:
    """The pace of a stage, measured from the first call."""

    _started: float = field(default_factory=time.monotonic)
    _first: int | None = None

    def set_start(self, done: int) -> None:
        """Set the number of finished blocks at the start."""
        if self._first is None:
            self._first = done

    def rate(self, done: int) -> float | None:
        """Return the blocks per second so far; None: unknown yet."""
        self.set_start(done)
        blocks_made, spent = done - (self._first or 0), time.monotonic() - self._started
        return blocks_made / spent if blocks_made > 0 and spent > 0 else None

    def remaining_seconds(self, done: int, blocks: int) -> float | None:
        """Return the seconds until all blocks are done, at the pace so far."""
        rate = self.rate(done)
        return None if rate is None else (blocks - done) / rate

    def publish(self, stage: str, done: int, blocks: int) -> None:
        """Set `current` to the progress of a stage."""
        remaining = self.remaining_seconds(done, blocks)
        at = {"stage": stage, "blocks_done": done, "blocks": blocks}
        current_progress.clear()
        current_progress.update(
            at if remaining is None else at | {"remaining_seconds": remaining}
        )

    def to_text(self, done: int, blocks: int) -> str:
        """Return rate and remaining time as text, "" if unknown."""
        rate, remaining = self.rate(done), self.remaining_seconds(done, blocks)
        if rate is None or remaining is None:
            return ""
        return f"{rate:.3g}/s, about {_format_span(remaining)} left"

    def to_numbers(self, done: int, blocks: int) -> dict[str, Any]:
        """Return rate and remaining time as numbers."""
        numbers = {
            "rate": self.rate(done),
            "remaining": self.remaining_seconds(done, blocks),
        }
        return {name: None if v is None else round(v, 3) for name, v in numbers.items()}


def _format_span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
