"""System `volunteers`: public records, and one regression on them."""

from __future__ import annotations

from curvote.chain.settings import Epsilons, Strict
from curvote.protocols.settings import Clients, Representation


class Settings(Strict):
    """Settings of learning from volunteers' records alone."""

    clients: Clients
    project: Representation
    epsilon: Epsilons = [1.0]
