"""Messages of two rounds, where the registry looks for them."""

from __future__ import annotations

from curvote.systems.labels.messages import TASK, TWO_ROUNDS_MESSAGES

__all__ = ["MESSAGES", "TASK"]

MESSAGES = TWO_ROUNDS_MESSAGES
