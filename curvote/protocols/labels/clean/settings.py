"""System of the comparison without privacy: labels that nobody would ever send."""

from __future__ import annotations

from curvote.chain.settings import Strict
from curvote.protocols.labels.settings import Labels, Public
from curvote.protocols.settings import Clients, Learner


class CleanSettings(Strict):
    """Settings of private labels, without an epsilon."""

    clients: Clients
    public: Public = Public()
    labels: Labels = Labels()
    learners: list[Learner] = [Learner(name="auto", label="auto")]
