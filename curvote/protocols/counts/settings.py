"""Settings and message of `counts`: the bin of one number and the class."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from curvote.chain.settings import Strict
from curvote.protocols.settings import Shared


class Counts(Strict):
    """Number of bins, equally likely by the assumed law."""

    bins: Annotated[int, Field(ge=2, strict=True)] = 3


class Settings(Shared):
    """Settings of noised counts."""

    counts: Counts = Counts()
