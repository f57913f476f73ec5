"""Settings and message of `tree`: the cell of a grid and the class."""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np
from pydantic import Field

from curvote.chain.settings import Strict
from curvote.curves.partition import Partitions, random_grid
from curvote.systems.cells.messages import Answer
from curvote.systems.common.settings import Shared


class Tree(Strict):
    """Number of cells of the public grid."""

    cells: Annotated[int, Field(ge=2, strict=True)] = 8


class Settings(Shared):
    """Settings of a tree."""

    tree: Tree = Tree()


def _nominal_grid(d: int, rescale: str) -> Partitions:
    return random_grid(d, rescale, cells=Tree().cells, rng=np.random.default_rng(0))


TREE_ANSWER: Final = Answer(
    what="one noised word: in which cell of a public grid it lies, and its class",
    nominal_partitions=_nominal_grid,
)
MESSAGES = {"report": TREE_ANSWER}
