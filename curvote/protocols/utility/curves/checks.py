"""What may be wrong with settings of a quantification of noised coefficients."""

from __future__ import annotations

from collections.abc import Iterator

from curvote.chain.axis import Settings
from curvote.errors import Problem
from curvote.protocols import checks as shared
from curvote.protocols.encoding_checks import representation
from curvote.protocols.utility.checks import deployed, study


def checks(pipeline: Settings) -> Iterator[Problem]:
    """Yield what is wrong with roles, encoding, learners and mechanisms."""
    every = shared.roles, shared.two, shared.tested, representation, shared.taught
    for check in every:
        yield from check(pipeline)
    yield from study(pipeline)
    yield from deployed(pipeline)
    for key in ("components", "directions"):
        if getattr(pipeline.deployments, key):
            message = "coefficients are few already: send them, or fewer of the basis."
            yield Problem(message, ("deployments", key))
    if "retrain" in pipeline.deployments.reads:
        message = "a rule on coefficients is not fitted again: read raw or decode."
        yield Problem(message, ("deployments", "reads"))
