"""Stage privatize where codes came by envelope."""

from __future__ import annotations

from curvote.protocols.labels.asked import task_of
from curvote.protocols.stages.collected import facts, one

__all__ = ["facts", "one", "task_of"]
