"""Settings and message of `counts`: the bin of one number and the class."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

from pydantic import Field

from curvote.chain.settings import Strict
from curvote.curves.partition import bin_partitions
from curvote.systems.cells.messages import Answer
from curvote.systems.common.settings import Shared


class Counts(Strict):
    """Number of bins, equally likely by the assumed law."""

    bins: Annotated[int, Field(ge=2, strict=True)] = 3


class Settings(Shared):
    """Settings of noised counts."""

    counts: Counts = Counts()


COUNTS_ANSWER: Final = Answer(
    what="one noised word: in which bin one of its numbers lies, and its class",
    nominal_partitions=partial(bin_partitions, count=Counts().bins),
)
MESSAGES = {"report": COUNTS_ANSWER}
