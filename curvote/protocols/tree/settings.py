"""The section of pipelines.yaml that `tree` reads."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from curvote.chain.settings import Strict
from curvote.protocols.settings import Shared


class Tree(Strict):
    """How many cells the public grid has."""

    cells: Annotated[int, Field(ge=2, strict=True)] = 8


class Settings(Shared):
    """A tree."""

    tree: Tree = Tree()
