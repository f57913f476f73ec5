"""System `online`: clients who come in arrivals, one on the next."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from curvote.chain.settings import Whole
from curvote.protocols.mrma.settings import Watch
from curvote.protocols.settings import Aggregate, Privatize, Taught


class Online(Watch):
    """Arrivals of clients, and what their votes change.

    ``arrivals`` groups have come so far. Votes fade by ``memory`` an arrival. Where
    the ensemble's utility fell by ``drop`` standard errors, ``more`` classifiers are
    trained on the newest reports.
    """

    arrivals: Whole = 1
    memory: Annotated[float, Field(gt=0, le=1)] = 1.0
    more: Whole = 20


class Settings(Taught):
    """Settings of MRMA for clients who keep coming."""

    privatize: Privatize = Privatize()
    aggregate: Aggregate = Aggregate()
    online: Online = Online()
