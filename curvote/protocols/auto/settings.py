"""System `auto`: settings of whichever system it chooses."""

from __future__ import annotations

from curvote.protocols.direct.settings import Settings as DirectSettings
from curvote.protocols.votes.settings import Votes


class Settings(DirectSettings):
    """Settings of `direct` and of `votes` together."""

    votes: Votes = Votes()
