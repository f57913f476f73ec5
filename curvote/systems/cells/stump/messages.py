"""Settings and message of `stump`: the side of a threshold and the class."""

from __future__ import annotations

from functools import partial
from typing import Final

from curvote.chain.settings import Strict, WholeNumber
from curvote.curves.partition import half_partitions
from curvote.systems.cells.messages import Answer
from curvote.systems.common.settings import Shared


class Stump(Strict):
    """Number of thresholds of each number that are tried."""

    thresholds: WholeNumber = 1


class Settings(Shared):
    """Settings of a stump."""

    stump: Stump = Stump()


STUMP_ANSWER: Final = Answer(
    what="one noised word: on which side of one threshold it lies, and its class",
    nominal_partitions=partial(half_partitions, thresholds=Stump().thresholds),
)
MESSAGES = {"report": STUMP_ANSWER}
