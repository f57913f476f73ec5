"""The message of `tree`: the cell of a public grid and the class, in a noised word."""

from __future__ import annotations

from typing import Final

import numpy as np

from curvote.protocols.cells.messages import Answer
from curvote.protocols.tree.settings import Tree
from curvote.representation.partition import Partitions, random_grid


def _nominal_grid(d: int, rescale: str) -> Partitions:
    return random_grid(d, rescale, cells=Tree().cells, rng=np.random.default_rng(0))


TREE_ANSWER: Final = Answer(
    what="one noised word: in which cell of a public grid it lies, and its class",
    nominal_partitions=_nominal_grid,
)
MESSAGES = {"report": TREE_ANSWER}
