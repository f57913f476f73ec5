"""The sections of pipelines.yaml that `auto` reads."""

from __future__ import annotations

from curvote.protocols.direct.settings import Settings as DirectSettings
from curvote.protocols.votes.settings import Votes


class Settings(DirectSettings):
    """What `direct` reads, and `votes`."""

    votes: Votes = Votes()
