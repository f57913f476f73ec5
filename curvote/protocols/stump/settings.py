"""Settings and message of `stump`: the side of a threshold and the class."""

from __future__ import annotations

from curvote.chain.settings import Strict, Whole
from curvote.protocols.settings import Shared


class Stump(Strict):
    """Number of thresholds of each number that are tried."""

    thresholds: Whole = 1


class Settings(Shared):
    """Settings of a stump."""

    stump: Stump = Stump()
