"""The message of `counts`: the bin of one number and the class, in one noised word."""

from __future__ import annotations

from functools import partial
from typing import Final

from curvote.protocols.cells.messages import Answer
from curvote.protocols.counts.settings import Counts
from curvote.representation.partition import bin_partitions

COUNTS_ANSWER: Final = Answer(
    what="one noised word: in which bin one of its numbers lies, and its class",
    nominal_partitions=partial(bin_partitions, count=Counts().bins),
)
MESSAGES = {"report": COUNTS_ANSWER}
