"""Messages of two rounds: half of the labels, then the likely ones of the others."""

from __future__ import annotations

from typing import Final

from curvote.labels.task import ASKS
from curvote.protocols.labels.messages import TASK, FirstCodeMessage, LikelyCodeMessage

__all__ = ["LIKELY", "MESSAGES", "TASK", "TWO_ROUNDS"]

TWO_ROUNDS: Final = "labels_two"
LIKELY: Final = LikelyCodeMessage.name
MESSAGES = {ASKS: FirstCodeMessage(), LIKELY: LikelyCodeMessage()}
