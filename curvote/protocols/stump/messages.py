"""The message of `stump`: the side of one threshold and the class, in a noised word."""

from __future__ import annotations

from functools import partial
from typing import Final

from curvote.protocols.cells.messages import Answer
from curvote.protocols.stump.settings import Stump
from curvote.representation.partition import half_partitions

STUMP_ANSWER: Final = Answer(
    what="one noised word: on which side of one threshold it lies, and its class",
    nominal_partitions=partial(half_partitions, thresholds=Stump().thresholds),
)
MESSAGES = {"report": STUMP_ANSWER}
