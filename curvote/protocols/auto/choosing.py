"""Settings of `auto` and of open arms, resolved for each epsilon."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from curvote.chain.axis import PipelineSettings
from curvote.chain.system import Part
from curvote.datasets.lookup import classes, resolve_source
from curvote.errors import Problem, UserError
from curvote.protocols.choice import Choice, choose_arm, choose_protocol
from curvote.protocols.direct.arms import ARM_PROTOCOLS
from curvote.protocols.mrma.several import class_count
from curvote.protocols.questions import halving_code
from curvote.protocols.volunteers import asked

AUTO_PROTOCOL = "auto"
# The arms that are a protocol of their own, by its name.
PROTOCOL_ARMS = {protocol: arm for arm, protocol in ARM_PROTOCOLS.items()}


def resolve_choice(pipeline: PipelineSettings) -> list[Part]:
    """Return the settings that the rule or the arm makes, by epsilon."""
    if is_left_to_rule(pipeline):
        return [
            _chosen_part(pipeline, epsilon, choice)
            for epsilon, choice in epsilon_choices(pipeline)
        ]
    arm = PROTOCOL_ARMS.get(pipeline.protocol, pipeline.direct.arm)
    return [Part(_named_settings(pipeline, "direct", arm))]


def check_choice(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Yield why the rule cannot choose, or why it has no say."""
    try:
        list(epsilon_choices(pipeline))
    except UserError as error:
        yield Problem(str(error), ("protocol",))
    if pipeline.liars and not is_left_to_rule(pipeline):
        message = (
            f"counts where a rule chooses, and {pipeline.protocol} leaves it nothing;"
            " name it beside `auto`, or leave it out."
        )
        yield Problem(message, ("liars",))
    yield from asked.check_join(pipeline)


def is_left_to_rule(pipeline: PipelineSettings) -> bool:
    """Say whether the protocol or its arm is left to the rule."""
    if pipeline.protocol in PROTOCOL_ARMS:
        return False
    return AUTO_PROTOCOL in (pipeline.protocol, pipeline.direct.arm)


def epsilon_choices(pipeline: PipelineSettings) -> Iterator[tuple[float, Choice]]:
    """Yield (epsilon, choice) if everybody reports once."""
    if not is_left_to_rule(pipeline):
        return
    n, d = pipeline.clients.train + pipeline.clients.vote, known_width(pipeline)
    with_volunteers = asked.joins_volunteers(pipeline)
    rule = (
        choose_protocol
        if pipeline.protocol == AUTO_PROTOCOL and not with_volunteers
        else choose_arm
    )
    facts = pipeline.liars, len(classes(pipeline.source) or (0, 1))
    for epsilon in pipeline.epsilon:
        choice = rule(n, d, epsilon, *facts)
        yield (
            epsilon,
            asked.joined_choice(pipeline, choice, d, facts[1])
            if with_volunteers
            else choice,
        )


def known_width(pipeline: PipelineSettings) -> int:
    """Return d, if it is known before any file is read."""
    if pipeline.project.size is not None:
        return int(pipeline.project.size)
    dataset, parameters = resolve_source(pipeline.source)
    points = dataset.width(parameters)
    if points is None:
        message = "how many numbers a record has is not known yet; name the arm."
        raise UserError(message, where=("protocol",))
    return int(points)


def _chosen_part(pipeline: PipelineSettings, epsilon: float, choice: Choice) -> Part:
    settings_of_choice = _named_settings(pipeline, choice.protocol, choice.arm)
    gate = settings_of_choice.direct.gate or pipeline.protocol in (
        AUTO_PROTOCOL,
        asked.JOINED_PROTOCOL,
    )
    direct = settings_of_choice.direct.model_copy(update={"gate": gate})
    settings = settings_of_choice.model_copy(
        update={"epsilon": [epsilon], "direct": direct}
    )
    rule = AUTO_PROTOCOL if pipeline.protocol == AUTO_PROTOCOL else ""
    return Part(settings, (("epsilon", epsilon),), choice.method, choice.reason, rule)


def _named_settings(
    pipeline: PipelineSettings, protocol: str, arm: str | None
) -> PipelineSettings:
    """Return the settings of one system under the label they had."""
    if asked.joins_volunteers(pipeline):
        protocol, arm = asked.JOINED_PROTOCOL, asked.joined_arm(arm)
    update: dict[str, Any] = {
        "protocol": ARM_PROTOCOLS.get(arm or "", protocol),
        "label": pipeline.called,
        "direct": pipeline.direct.model_copy(update={"arm": arm or AUTO_PROTOCOL}),
    }
    if hasattr(pipeline, "votes"):
        voters = pipeline.clients.train + pipeline.clients.vote
        per_split = voters // len(halving_code(class_count(pipeline.source)))
        votes_update = {"directions": min(pipeline.votes.directions, max(per_split, 1))}
        update["votes"] = pipeline.votes.model_copy(update=votes_update)
    return pipeline.model_copy(update=update)
