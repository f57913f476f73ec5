"""Checks of the settings of private numbers, each key being well formed."""

from __future__ import annotations

from collections.abc import Iterator

from curvote.chain.axis import PipelineSettings
from curvote.datasets import lookup
from curvote.errors import Problem, UserError
from curvote.protocols import checks as shared
from curvote.protocols.labels.checks import check_public


def check_settings(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Yield the problems of roles, the source, public features and learners."""
    yield from shared.check_roles(pipeline)
    yield from shared.check_test_clients(pipeline)
    yield from check_public(pipeline)
    _, parameters = lookup.resolve_source(pipeline.source)
    if getattr(parameters, "target", None) is None:
        message = "labels_regression learns a number; name a target."
        yield Problem(message, ("source",))
    for index, learner in enumerate(pipeline.learners):
        yield from _check_learner(learner.name, learner.params, index)


def _check_learner(
    name: str, params: dict[str, object], index: int
) -> Iterator[Problem]:
    from curvote.labels.regression.learners import (
        make_regressor,
    )  # scikit-learn: a second

    where = ("learners", index)
    try:
        make_regressor(name, 1, 0)
    except UserError as error:
        yield Problem(str(error), where)
    if params:
        message = f"{name} is tuned by the noised numbers; it takes no parameters here."
        yield Problem(message, where)
