"""What `auto` stands for: one concrete pipeline for each epsilon, from public facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from curvote.datasets.lookup import module
from curvote.errors import UserError
from curvote.protocols.choice import Choice, arm_of, choose
from curvote.run.config.schema import Pipeline
from curvote.run.config.settings import settings

AUTO = "auto"
# Two rounds are another chain, with other messages: a protocol of its own.
TWO_ROUNDS = "direct_two"
_RULED = (AUTO, "direct")


def is_open(pipeline: Pipeline) -> bool:
    """Say whether the protocol or its arm is left to the rule."""
    arm = pipeline.protocol == "direct" and pipeline.direct.arm == AUTO
    return pipeline.protocol == AUTO or arm


def parts(pipeline: Pipeline) -> list[Pipeline]:
    """Return the pipeline, or what the rule makes of it at each epsilon.

    Tables go on calling it by the name that it had.
    """
    if is_open(pipeline):
        chosen = list(choices(pipeline))
        return [_with(pipeline, c.protocol, c.arm, [e]) for e, c in chosen]
    if pipeline.protocol in {"direct", TWO_ROUNDS}:
        arm = "two" if pipeline.protocol == TWO_ROUNDS else pipeline.direct.arm
        return [_with(pipeline, "direct", arm, pipeline.epsilon)]
    return [pipeline]


def concrete(config: Mapping[str, Any]) -> list[Pipeline]:
    """Return the concrete pipelines of a run's configuration, setting after setting."""
    every = [Pipeline.model_validate(own) for _, own in settings(config)]
    return [part for pipeline in every for part in parts(pipeline)]


def chosen(config: Mapping[str, Any]) -> dict[tuple[str, float], Choice]:
    """Return what the rule took, by the name in tables and epsilon, where it was asked.

    Settings that differ in N or d may differ in it: the last one stands.
    """
    left_open = (own for _, own in settings(config) if own["protocol"] in _RULED)
    return {
        (pipeline.called, epsilon): choice
        for pipeline in map(Pipeline.model_validate, left_open)
        for epsilon, choice in choices(pipeline)
    }


def reasons(config: Mapping[str, Any]) -> list[str]:
    """Return what was left to the rule, and what it took, a line for each epsilon."""
    return [
        f"{called}, epsilon {epsilon:g}: {choice.method} ({choice.reason})"
        for (called, epsilon), choice in chosen(config).items()
    ]


def choices(pipeline: Pipeline) -> Iterator[tuple[float, Choice]]:
    """Yield (epsilon, choice): everybody who trains or votes would report once."""
    if not is_open(pipeline):
        return
    n, d = pipeline.clients.train + pipeline.clients.vote, width(pipeline)
    rule = choose if pipeline.protocol == AUTO else arm_of
    for epsilon in pipeline.epsilon:
        yield epsilon, rule(n, d, epsilon, pipeline.liars)


def width(pipeline: Pipeline) -> int:
    """Return d as far as it is known before any file is read; else a UserError."""
    if pipeline.project.size is not None:
        return pipeline.project.size
    dataset = module(pipeline.source["name"])
    known = dataset.width(dataset.Parameters.model_validate(pipeline.source))
    if known is None:
        message = "how many numbers a record has is not known yet; name the arm."
        raise UserError(message, where=("protocol",))
    return int(known)


def _with(
    pipeline: Pipeline, protocol: str, arm: str | None, epsilon: list[float]
) -> Pipeline:
    direct = pipeline.direct.model_copy(update={"arm": arm or AUTO})
    voters = pipeline.clients.train + pipeline.clients.vote
    few = {"directions": min(pipeline.votes.directions, voters)}
    return pipeline.model_copy(
        update={
            "protocol": TWO_ROUNDS if arm == "two" else protocol,
            "label": pipeline.called,
            "direct": direct,
            "votes": pipeline.votes.model_copy(update=few),
            "epsilon": epsilon,
        }
    )
