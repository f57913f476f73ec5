"""System `clean`: learners on what clients would never send."""

from __future__ import annotations

from curvote.chain.settings import Strict
from curvote.protocols.settings import Clients, Learner, Representation, Train


class Settings(Strict):
    """Settings of learners on the clients' own numbers."""

    clients: Clients
    project: Representation
    train: Train | None = None
    learners: list[Learner] = []
    as_published: bool = False
