"""The section of pipelines.yaml that `counts` reads."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from curvote.chain.settings import Strict
from curvote.protocols.settings import Shared


class Counts(Strict):
    """Into how many bins, equally likely by the assumed law, each number is put."""

    bins: Annotated[int, Field(ge=2, strict=True)] = 3


class Settings(Shared):
    """Noised counts."""

    counts: Counts = Counts()
