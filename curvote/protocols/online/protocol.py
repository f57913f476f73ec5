"""The online chain as data: a study of clients who come in arrivals, one on the next.

A stage with the axis ``arrival`` is one step for each arrival; ``NAME@previous`` is
what stage NAME made of the arrival before, absent for the first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from curvote.protocols.mrma.protocol import REPORTS, releases_reports
from curvote.protocols.stage import Release, Stage

MESSAGES: dict[str, Any] = {}
PRODUCTION: tuple[Stage, ...] = ()

_HERE = "curvote.protocols.online"
_LEARNERS = ("curvote.server.learners.registry:LEARNERS", "learner.name")
_ROLES = ("clients", "source.groups", "seed", "replicates")
_AXES = ("epsilon", "learner", "arrival")

STAGES = (
    replace(REPORTS, module=f"{_HERE}.privatize", tables=("arriving",)),
    Stage(
        "learn",
        f"{_HERE}.learn",
        inputs=("privatize", "learn@previous", "update@previous"),
        axes=_AXES,
        params=(
            "arrival",
            "learner.name",
            "learner.params",
            "train.count",
            "train.size",
            "online.more",
            "seed",
            "replicates",
        ),
        plugins=(_LEARNERS,),
        tables=("candidates",),
        side="server",
    ),
    Stage(
        "evaluate",
        f"{_HERE}.evaluate",
        inputs=("project", "learn", "update@previous"),
        axes=_AXES,
        params=("arrival", "epsilon", "project.judge", *_ROLES),
        tables=("arrival_votes",),
        side="client -> server",
    ),
    Stage(
        "update",
        f"{_HERE}.update",
        inputs=("learn", "evaluate", "update@previous"),
        axes=_AXES,
        params=(
            "arrival",
            "epsilon",
            "aggregate.cutoff",
            "aggregate.when_none_pass",
            "aggregate.weights",
            "online.memory",
            "online.drop",
            "replicates",
        ),
        tables=("standing", "history"),
        side="server",
    ),
    Stage(
        "report",
        f"{_HERE}.score",
        inputs=("project", "update"),
        axes=_AXES,
        params=(
            "arrival",
            "epsilon",
            "learner.label",
            "label",
            "project.judge",
            *_ROLES,
        ),
        tables=("scores",),
        side="client (study)",
    ),
)


def releases(config: dict[str, Any], d: int) -> list[Release]:
    """Return the messages of each client in words, for every epsilon of a pipeline."""
    return [
        *releases_reports(config, d),
        Release(
            "evaluation client",
            'one noised bit: "the classifier was right for me"',
            "binary_rr",
            "epsilon",
            "each judges one classifier, once, in the arrival it comes with: a weak"
            " one, or an earlier ensemble",
        ),
    ]
