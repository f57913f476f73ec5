"""The sections of pipelines.yaml that learning from volunteers alone reads."""

from __future__ import annotations

from curvote.chain.settings import Strict
from curvote.protocols.settings import Clients, Representation


class Settings(Strict):
    """Volunteers' records alone; there is no epsilon."""

    clients: Clients
    project: Representation
