"""What leaves the owners of labels in two rounds."""

from __future__ import annotations

from typing import Final

from curvote.labels.task import ASKS
from curvote.protocols.labels.messages import TASK, First, Likely

__all__ = ["LIKELY", "MESSAGES", "PROTOCOL", "TASK"]

PROTOCOL: Final = "labels_two"
LIKELY: Final = Likely.name
MESSAGES = {ASKS: First(), LIKELY: Likely()}
