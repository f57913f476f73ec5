"""Settings and message of `tree`: the cell of a grid and the class."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from curvote.chain.settings import Strict
from curvote.protocols.settings import Shared


class Tree(Strict):
    """Number of cells of the public grid."""

    cells: Annotated[int, Field(ge=2, strict=True)] = 8


class Settings(Shared):
    """Settings of a tree."""

    tree: Tree = Tree()
