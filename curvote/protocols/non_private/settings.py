"""The sections of pipelines.yaml that learning without privacy reads."""

from __future__ import annotations

from curvote.chain.settings import Strict
from curvote.protocols.settings import Clients, Learner, Representation, Train


class Settings(Strict):
    """Learners on the clients' own numbers; there is no epsilon."""

    clients: Clients
    project: Representation
    train: Train | None = None
    learners: list[Learner] = []
    as_published: bool = False
