"""When labels of volunteers are to be joined with reports, and when they cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from curvote.chain.axis import Settings
from curvote.errors import Problem
from curvote.protocols.choice import Choice
from curvote.protocols.direct.arms import PROTOCOLS
from curvote.protocols.volunteers.worth import worth

JOINED: Final = "joined"
_LABELS = ("volunteers", "labels")


def joins(pipeline: Settings) -> bool:
    """Say whether settings join volunteers' labelled records with the reports."""
    return pipeline.protocol == JOINED or bool(pipeline.volunteers.labels)


def arm_for(arm: str | None) -> str | None:
    """Return the arm to join with: volunteers whiten as a first round would."""
    return "joint" if arm in PROTOCOLS else arm


def chosen(pipeline: Settings, choice: Choice, d: int, n_classes: int = 2) -> Choice:
    """Return the choice of a rule for reports, joined with volunteers."""
    count = pipeline.clients.public
    size, _, _ = choice.reason.partition(":")
    reason = (
        f"{size}: beside the labels of {count} volunteers, worth N epsilon^2 ="
        f" {worth(count, d, n_classes):,.0f}"
    )
    return replace(choice, arm=arm_for(choice.arm), reason=reason)


def checks(pipeline: Settings) -> Iterator[Problem]:
    """Yield why volunteers' labels cannot be joined with the reports."""
    if not joins(pipeline):
        return
    if not pipeline.clients.public:
        message = "labels of volunteers are asked for, but clients.public is 0."
        yield Problem(message, _LABELS)
    if pipeline.direct.arm in PROTOCOLS or pipeline.protocol in PROTOCOLS.values():
        message = (
            "volunteers are joined with reports of arm mean or joint: they centre and"
            " whiten as a first round would; name one of these."
        )
        yield Problem(message, _LABELS)
    if pipeline.liars:
        message = "nobody measured a join where some may lie; leave one of both out."
        yield Problem(message, ("liars",))
    if pipeline.intake:
        message = "no volunteer's record is here; the reports stand alone."
        yield Problem(message, _LABELS)
