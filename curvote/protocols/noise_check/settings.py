"""System `drift`: reports, and how far they lie from the records."""

from __future__ import annotations

from curvote.chain.settings import Strict
from curvote.protocols.settings import Privatize, Shared


class Drift(Strict):
    """Value of z at which noised and clean labels are compared."""

    at: float = 0.0


class Settings(Shared):
    """Settings of reports beside their records."""

    privatize: Privatize = Privatize()
    drift: Drift = Drift()
