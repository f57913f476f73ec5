"""The sections that a quantification of noised coefficients reads."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from curvote.chain.settings import Epsilons, Strict
from curvote.protocols.settings import Learner, Representation
from curvote.protocols.utility.settings import Deployments, Parties


class Settings(Strict):
    """What a quantification of noised coefficients reads."""

    clients: Parties
    project: Representation
    epsilon: Epsilons
    learners: Annotated[list[Learner], Field(min_length=1)]
    deployments: Deployments
