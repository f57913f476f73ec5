"""What `auto` and an open arm stand for: one protocol for each epsilon."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from curvote.chain.axis import Settings
from curvote.chain.system import Part
from curvote.datasets.lookup import chosen, classes
from curvote.errors import Problem, UserError
from curvote.protocols.choice import Choice, arm_of, choose
from curvote.protocols.direct.arms import PROTOCOLS
from curvote.protocols.mrma.several import number
from curvote.protocols.questions import splits
from curvote.protocols.volunteers import asked

AUTO = "auto"
# The arms that are a protocol of their own, by its name.
ARMS = {protocol: arm for arm, protocol in PROTOCOLS.items()}


def parts(pipeline: Settings) -> list[Part]:
    """Return what the rule makes of the settings at each epsilon, or what is named."""
    if is_open(pipeline):
        return [
            _chosen(pipeline, epsilon, choice) for epsilon, choice in choices(pipeline)
        ]
    arm = ARMS.get(pipeline.protocol, pipeline.direct.arm)
    return [Part(_named(pipeline, "direct", arm))]


def checks(pipeline: Settings) -> Iterator[Problem]:
    """Yield why the rule cannot choose, or why it is not asked."""
    try:
        list(choices(pipeline))
    except UserError as error:
        yield Problem(str(error), ("protocol",))
    if pipeline.liars and not is_open(pipeline):
        message = (
            f"counts where a rule chooses, and {pipeline.protocol} leaves it nothing;"
            " name it beside `auto`, or leave it out."
        )
        yield Problem(message, ("liars",))
    yield from asked.checks(pipeline)


def is_open(pipeline: Settings) -> bool:
    """Say whether the protocol or its arm is left to the rule."""
    if pipeline.protocol in ARMS:
        return False
    return AUTO in (pipeline.protocol, pipeline.direct.arm)


def choices(pipeline: Settings) -> Iterator[tuple[float, Choice]]:
    """Yield (epsilon, choice): everybody who trains or votes would report once."""
    if not is_open(pipeline):
        return
    n, d = pipeline.clients.train + pipeline.clients.vote, width(pipeline)
    both = asked.joins(pipeline)
    rule = choose if pipeline.protocol == AUTO and not both else arm_of
    told = pipeline.liars, len(classes(pipeline.source) or (0, 1))
    for epsilon in pipeline.epsilon:
        choice = rule(n, d, epsilon, *told)
        yield epsilon, asked.chosen(pipeline, choice, d, told[1]) if both else choice


def width(pipeline: Settings) -> int:
    """Return d as far as it is known before any file is read; else a UserError."""
    if pipeline.project.size is not None:
        return int(pipeline.project.size)
    dataset, parameters = chosen(pipeline.source)
    known = dataset.width(parameters)
    if known is None:
        message = "how many numbers a record has is not known yet; name the arm."
        raise UserError(message, where=("protocol",))
    return int(known)


def _chosen(pipeline: Settings, epsilon: float, choice: Choice) -> Part:
    own = _named(pipeline, choice.protocol, choice.arm)
    gate = own.direct.gate or pipeline.protocol in (AUTO, asked.JOINED)
    direct = own.direct.model_copy(update={"gate": gate})
    settings = own.model_copy(update={"epsilon": [epsilon], "direct": direct})
    rule = AUTO if pipeline.protocol == AUTO else ""
    return Part(settings, (("epsilon", epsilon),), choice.method, choice.reason, rule)


def _named(pipeline: Settings, protocol: str, arm: str | None) -> Settings:
    """Return the settings of one protocol, under the name that they had in tables."""
    if asked.joins(pipeline):
        protocol, arm = asked.JOINED, asked.arm_for(arm)
    update: dict[str, Any] = {
        "protocol": PROTOCOLS.get(arm or "", protocol),
        "label": pipeline.called,
        "direct": pipeline.direct.model_copy(update={"arm": arm or AUTO}),
    }
    if hasattr(pipeline, "votes"):
        voters = pipeline.clients.train + pipeline.clients.vote
        each = voters // len(splits(number(pipeline.source)))
        few = {"directions": min(pipeline.votes.directions, max(each, 1))}
        update["votes"] = pipeline.votes.model_copy(update=few)
    return pipeline.model_copy(update=update)
