"""Health of `curvote serve`: its heartbeat file, and checks of pipelines."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from curvote.flows.environment import is_alive
from curvote.run.project import Project

# Older, and the process hangs although it is there.
STALE_SECONDS = 60.0


@dataclass(frozen=True)
class Heartbeat:
    """The state of `curvote serve` at its last heartbeat.

    ``beat`` is of the clock that nobody sets (since the machine started), the others
    are dates. ``good`` is when schedules were last known to fire, ``trouble`` why they
    do not, empty where they do; ``next`` names each pipeline's next firings, ``due``
    the latest that came while it was served; ``faulty`` says what is wrong with which
    pipeline of the file.
    """

    process: str
    url: str
    started: str
    beat: float
    good: str | None = None
    trouble: str = ""
    schedules: dict[str, dict[str, Any]] = field(default_factory=dict)
    next: dict[str, list[str]] = field(default_factory=dict)
    due: dict[str, list[str]] = field(default_factory=dict)
    faulty: dict[str, str] = field(default_factory=dict)

    @property
    def is_alive(self) -> bool:
        """Whether the writing process lives and wrote lately."""
        return is_alive(self.process) and time.monotonic() - self.beat < STALE_SECONDS

    def write(self, project: Project) -> None:
        """Replace the heartbeat file atomically."""
        path = _heartbeat_path(project)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(self)), encoding="utf-8")
        temporary.replace(path)


def last_heartbeat(project: Project) -> Heartbeat | None:
    """Return the heartbeat of the latest `serve`; None: none is readable."""
    try:
        return Heartbeat(
            **json.loads(_heartbeat_path(project).read_text(encoding="utf-8"))
        )
    except (OSError, ValueError, TypeError):
        return None


def _heartbeat_path(project: Project) -> Path:
    return project.state / "serve.json"
