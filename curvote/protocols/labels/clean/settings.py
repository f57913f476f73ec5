"""The sections of pipelines.yaml that learning from labels themselves reads."""

from __future__ import annotations

from curvote.chain.settings import Strict
from curvote.protocols.labels.settings import Labels, Public
from curvote.protocols.settings import Clients, Learner


class Settings(Strict):
    """What private labels read, without an epsilon."""

    clients: Clients
    public: Public = Public()
    labels: Labels = Labels()
    learners: list[Learner] = [Learner(name="auto", label="auto")]
