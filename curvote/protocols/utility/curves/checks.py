"""Checks of a utility_curves pipeline's settings."""

from __future__ import annotations

from collections.abc import Iterator

from curvote.chain.axis import PipelineSettings
from curvote.errors import Problem
from curvote.protocols import checks as shared
from curvote.protocols.encoding_checks import check_representation
from curvote.protocols.utility.checks import check_deployments, check_study


def check_settings(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Yield the problems of roles, encoding, learners and mechanisms."""
    every = (
        shared.check_roles,
        shared.check_two_classes,
        shared.check_test_clients,
        check_representation,
        shared.check_learners,
    )
    for check in every:
        yield from check(pipeline)
    yield from check_study(pipeline)
    yield from check_deployments(pipeline)
    for key in ("components", "directions"):
        if getattr(pipeline.deployments, key):
            message = "coefficients are few already: send them, or fewer of the basis."
            yield Problem(message, ("deployments", key))
    if "retrain" in pipeline.deployments.reads:
        message = "a rule on coefficients is not fitted again: read raw or decode."
        yield Problem(message, ("deployments", "reads"))
