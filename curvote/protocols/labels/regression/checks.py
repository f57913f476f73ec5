"""What may be wrong with settings of private numbers, each key being well formed."""

from __future__ import annotations

from collections.abc import Iterator

from curvote.chain.axis import Settings
from curvote.datasets import lookup
from curvote.errors import Problem, UserError
from curvote.protocols import checks as shared
from curvote.protocols.labels.checks import public


def checks(pipeline: Settings) -> Iterator[Problem]:
    """Yield what is wrong with roles, the source, public features and learners."""
    yield from shared.roles(pipeline)
    yield from shared.tested(pipeline)
    yield from public(pipeline)
    _, parameters = lookup.chosen(pipeline.source)
    if getattr(parameters, "target", None) is None:
        message = "labels_regression learns a number; name a target."
        yield Problem(message, ("source",))
    for index, learner in enumerate(pipeline.learners):
        yield from _learner(learner.name, learner.params, index)


def _learner(name: str, params: dict[str, object], index: int) -> Iterator[Problem]:
    from curvote.labels.regression.learners import made  # scikit-learn: a second

    where = ("learners", index)
    try:
        made(name, 1, 0)
    except UserError as error:
        yield Problem(str(error), where)
    if params:
        message = f"{name} is tuned by the noised numbers; it takes no parameters here."
        yield Problem(message, where)
