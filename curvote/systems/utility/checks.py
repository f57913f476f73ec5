"""Checks of a utility pipeline's settings."""

from __future__ import annotations

from collections.abc import Iterator

from curvote.base.errors import Problem, UserError
from curvote.chain.axis import PipelineSettings
from curvote.mechanisms.factory import mechanism_class
from curvote.systems.common import checks as shared
from curvote.systems.utility.inputs import make_classifier

Problems = Iterator[Problem]


def check_settings(pipeline: PipelineSettings) -> Problems:
    """Yield the problems of roles, models, mechanisms and their needs."""
    yield from shared.check_roles(pipeline)
    yield from shared.check_test_clients(pipeline)
    yield from check_study(pipeline)
    if not pipeline.models:
        yield Problem("is missing: name a classifier by its path.", ("models",))
    labels = [model.label for model in pipeline.models]
    for index, model in enumerate(pipeline.models):
        if labels.index(model.label) < index:
            message = f"two models are called {model.label}: give each a label."
            yield Problem(message, ("models", index))
        try:
            make_classifier(model.model_dump(), seed=0)
        except UserError as error:
            yield Problem(str(error), ("models", index))
    yield from check_deployments(pipeline)


def check_deployments(pipeline: PipelineSettings) -> Problems:
    """Yield the problems of mechanisms and ways of reading."""
    yield from _check_mechanisms(pipeline)
    yield from _check_public(pipeline)


def check_study(pipeline: PipelineSettings) -> Problems:
    """Yield a problem in production: agreement needs clean records.

    A figure of clean records that clients hold would be a release without a budget.
    """
    if pipeline.production:
        message = (
            "agreement is computed from clean records: a study, or public records and"
            " volunteers; nothing of it is for production."
        )
        yield Problem(message, ("mode",))
    if pipeline.intake is not None:
        yield Problem("nobody sends anything here: leave it out.", ("intake",))


def _check_mechanisms(pipeline: PipelineSettings) -> Problems:
    """Yield the problems of the mechanisms."""
    section = pipeline.deployments
    for index, name in enumerate(section.mechanisms):
        try:
            mechanism_class(name)
        except UserError as error:
            yield Problem(str(error), ("deployments", "mechanisms", index))
    for name in section.params:
        if name not in section.mechanisms:
            message = f"{name} is none of the mechanisms."
            yield Problem(message, ("deployments", "params"))


def _check_public(pipeline: PipelineSettings) -> Problems:
    """Yield a problem where public records are needed and missing."""
    section = pipeline.deployments
    if not pipeline.clients.public:
        if "decode" in section.reads:
            message = "decode needs public records: give clients.public, or read raw."
            yield Problem(message, ("deployments", "reads"))
        for key in ("components", "directions"):
            if getattr(section, key):
                message = f"{key} are found on public records: give clients.public."
                yield Problem(message, ("deployments", key))
