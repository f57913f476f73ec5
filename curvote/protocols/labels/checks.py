"""Checks of the settings of private labels, each key being well formed."""

from __future__ import annotations

from collections.abc import Iterator

from curvote.chain.axis import PipelineSettings
from curvote.datasets import lookup
from curvote.errors import Problem, UserError
from curvote.labels.encoders import AUTO, mechanism_name
from curvote.protocols import checks as shared

Problems = Iterator[Problem]


def check_settings(pipeline: PipelineSettings) -> Problems:
    """Yield the problems of roles, the encoder, learners and rounds."""
    yield from check_learning(pipeline)
    yield from _check_encoder(pipeline)
    if pipeline.production and pipeline.intake and pipeline.intake.online:
        message = "a model is made of all codes at once: wait for them, then close."
        yield Problem(message, ("intake", "online"))


def check_learning(pipeline: PipelineSettings) -> Problems:
    """Yield the problems of roles, public features and learners."""
    yield from shared.check_roles(pipeline)
    yield from _check_owners(pipeline)
    yield from shared.check_test_clients(pipeline)
    yield from check_public(pipeline)
    from curvote.labels.learners.making import make  # scikit-learn: a second

    for index, learner in enumerate(pipeline.learners):
        try:
            make(learner.name, **learner.params)
        except UserError as error:
            yield Problem(str(error), ("learners", index))


def _check_owners(pipeline: PipelineSettings) -> Problems:
    """Yield a problem unless clients train, or a public table's records are asked."""
    away, roles = lookup.is_remote(pipeline.source), pipeline.clients.model_dump()
    if away and any(roles.values()):
        message = "every record of the public table is asked; nobody plays a role."
        yield Problem(message, ("clients",))
    if not (away or pipeline.clients.train):
        yield Problem("say how many clients train.", ("clients", "train"))


def check_public(pipeline: PipelineSettings) -> Problems:
    """Yield the problems of what is done to public features."""
    public = pipeline.public
    if public.reduce == "pca" and public.size is None:
        yield Problem("is missing: say how many components.", ("public", "size"))
    if public.reduce == "none" and public.size is not None:
        yield Problem("counts with reduce: pca only.", ("public", "size"))


def _check_encoder(pipeline: PipelineSettings) -> Problems:
    labels = pipeline.labels
    try:
        for epsilon in pipeline.epsilon:
            mechanism_name(labels.encoder, class_count(pipeline), epsilon)
    except UserError as error:
        yield Problem(str(error), ("labels", "encoder"))
    if labels.rounds == 1 and labels.encoder == "rr_with_prior":
        message = "rr_with_prior takes what a first round says: rounds: 2."
        yield Problem(message, ("labels", "rounds"))
    if labels.rounds == 2 and labels.encoder not in (AUTO, "rr_with_prior"):
        message = f"two rounds have encoders of their own, not {labels.encoder}."
        yield Problem(message, ("labels", "encoder"))
    if labels.rounds == 2 and pipeline.production:
        message = "its priors, one a record, travel with no task: for studies only."
        yield Problem(message, ("labels", "rounds"))


def class_count(pipeline: PipelineSettings) -> int:
    """Return K; a source that lists no classes has two."""
    return len(lookup.classes(pipeline.source) or (0, 1))
