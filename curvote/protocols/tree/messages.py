"""The message of `tree`: the cell of a public grid and the class, in a noised word."""

from __future__ import annotations

from typing import Final

import numpy as np

from curvote.protocols.cells.messages import Answer
from curvote.protocols.tree.settings import Tree
from curvote.representation.partition import Partitions, grid


def _stand_in(d: int, rescale: str) -> Partitions:
    return grid(d, rescale, cells=Tree().cells, rng=np.random.default_rng(0))


ANSWER: Final = Answer(
    what="one noised word: in which cell of a public grid it lies, and its class",
    stand_in=_stand_in,
)
MESSAGES = {"report": ANSWER}
