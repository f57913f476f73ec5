"""Joining of volunteers' labels with reports: conditions and choice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from curvote.chain.axis import PipelineSettings
from curvote.errors import Problem
from curvote.protocols.choice import Choice
from curvote.protocols.direct.arms import ARM_PROTOCOLS
from curvote.protocols.volunteers.worth import volunteer_worth

JOINED_PROTOCOL: Final = "joined"
_LABELS_SETTING = ("volunteers", "labels")


def joins_volunteers(pipeline: PipelineSettings) -> bool:
    """Say whether settings join volunteers' labelled records with the reports."""
    return pipeline.protocol == JOINED_PROTOCOL or bool(pipeline.volunteers.labels)


def joined_arm(arm: str | None) -> str | None:
    """Return the arm to join with; volunteers replace a first round."""
    return "joint" if arm in ARM_PROTOCOLS else arm


def joined_choice(
    pipeline: PipelineSettings, choice: Choice, d: int, n_classes: int = 2
) -> Choice:
    """Return the choice of a rule for reports joined with volunteers."""
    count = pipeline.clients.public
    size, _, _ = choice.reason.partition(":")
    reason = (
        f"{size}: beside the labels of {count} volunteers, worth N epsilon^2 ="
        f" {volunteer_worth(count, d, n_classes):,.0f}"
    )
    return replace(choice, arm=joined_arm(choice.arm), reason=reason)


def check_join(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Yield why volunteers' labels cannot be joined with the reports."""
    if not joins_volunteers(pipeline):
        return
    if not pipeline.clients.public:
        message = "labels of volunteers are asked for, but clients.public is 0."
        yield Problem(message, _LABELS_SETTING)
    if (
        pipeline.direct.arm in ARM_PROTOCOLS
        or pipeline.protocol in ARM_PROTOCOLS.values()
    ):
        message = (
            "volunteers are joined with reports of arm mean or joint: they centre and"
            " whiten as a first round would; name one of these."
        )
        yield Problem(message, _LABELS_SETTING)
    if pipeline.liars:
        message = "nobody measured a join where some may lie; leave one of both out."
        yield Problem(message, ("liars",))
    if pipeline.intake:
        message = "no volunteer's record is here; the reports stand alone."
        yield Problem(message, _LABELS_SETTING)
