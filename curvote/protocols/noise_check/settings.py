"""The sections of pipelines.yaml that the check of the noise reads."""

from __future__ import annotations

from curvote.chain.settings import Strict
from curvote.protocols.settings import Privatize, Shared


class Drift(Strict):
    """The report ``at`` which protocol ``drift`` compares noised and clean labels."""

    at: float = 0.0


class Settings(Shared):
    """Reports beside the records they came from."""

    privatize: Privatize = Privatize()
    drift: Drift = Drift()
