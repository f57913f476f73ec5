"""The sections of pipelines.yaml that learning from volunteers alone reads."""

from __future__ import annotations

from curvote.chain.settings import Epsilons, Strict
from curvote.protocols.settings import Clients, Representation


class Settings(Strict):
    """Volunteers' records alone; a size that is left to a rule asks for epsilon."""

    clients: Clients
    project: Representation
    epsilon: Epsilons = [1.0]
