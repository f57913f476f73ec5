"""The section of pipelines.yaml that `stump` reads."""

from __future__ import annotations

from curvote.chain.settings import Strict, Whole
from curvote.protocols.settings import Shared


class Stump(Strict):
    """How many thresholds of each number are tried: with one, its public median."""

    thresholds: Whole = 1


class Settings(Shared):
    """A stump."""

    stump: Stump = Stump()
