"""What may be wrong with settings of a quantification, each key being well formed."""

from __future__ import annotations

from collections.abc import Iterator

from curvote.chain.axis import Settings
from curvote.errors import Problem, UserError
from curvote.mechanisms.making import kind
from curvote.protocols import checks as shared
from curvote.protocols.utility.fitting import made

Problems = Iterator[Problem]


def checks(pipeline: Settings) -> Problems:
    """Yield what is wrong with roles, models, mechanisms and what they need."""
    yield from shared.roles(pipeline)
    yield from shared.tested(pipeline)
    yield from study(pipeline)
    yield from _models(pipeline)
    yield from deployed(pipeline)


def deployed(pipeline: Settings) -> Problems:
    """Yield what is wrong with mechanisms, and with what they are read by."""
    yield from _mechanisms(pipeline)
    yield from _public(pipeline)


def study(pipeline: Settings) -> Problems:
    """Refuse production: an agreement is computed from clean records.

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


def _models(pipeline: Settings) -> Problems:
    if not pipeline.models:
        yield Problem("is missing: name a classifier by its path.", ("models",))
    labels = [model.label for model in pipeline.models]
    for index, model in enumerate(pipeline.models):
        if labels.index(model.label) < index:
            message = f"two models are called {model.label}: give each a label."
            yield Problem(message, ("models", index))
        try:
            made(model.model_dump(), seed=0)
        except UserError as error:
            yield Problem(str(error), ("models", index))


def _mechanisms(pipeline: Settings) -> Problems:
    asked = pipeline.deployments
    for index, name in enumerate(asked.mechanisms):
        try:
            kind(name)
        except UserError as error:
            yield Problem(str(error), ("deployments", "mechanisms", index))
    for name in asked.params:
        if name not in asked.mechanisms:
            message = f"{name} is none of the mechanisms."
            yield Problem(message, ("deployments", "params"))


def _public(pipeline: Settings) -> Problems:
    """Ask for public records where something is read or sent by them."""
    asked = pipeline.deployments
    if not pipeline.clients.public:
        if "decode" in asked.reads:
            message = "decode needs public records: give clients.public, or read raw."
            yield Problem(message, ("deployments", "reads"))
        for key in ("components", "directions"):
            if getattr(asked, key):
                message = f"{key} are found on public records: give clients.public."
                yield Problem(message, ("deployments", key))
