"""Settings of `utility_curves`."""

from __future__ import annotations

from curvote.chain.settings import Epsilons, Strict
from curvote.protocols.settings import Clients, Learner, Representation
from curvote.protocols.utility.settings import Deployments


class Settings(Strict):
    """What a quantification of noised coefficients reads."""

    clients: Clients
    project: Representation
    epsilon: Epsilons
    learners: list[Learner] = []
    deployments: Deployments = Deployments()
