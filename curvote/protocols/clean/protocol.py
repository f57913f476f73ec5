"""The comparison without privacy as data: learners on what clients would never send."""

from __future__ import annotations

from typing import Any

from curvote.protocols.stage import Release, Stage

MESSAGES: dict[str, Any] = {}
PRODUCTION: tuple[Stage, ...] = ()

_HERE = "curvote.protocols.clean"
_ROLES = ("clients", "source.groups", "seed", "replicates")

STAGES = (
    Stage(
        "fit",  # not "train": what it makes is for the clients' side only
        f"{_HERE}.fit",
        inputs=("project",),
        axes=("learner",),
        params=("learner.name", "learner.params", "train.count", "train.size", *_ROLES),
        plugins=(("curvote.server.learners.registry:LEARNERS", "learner.name"),),
        tables=("weak",),
        side="client (study)",
    ),
    Stage(
        "report",
        f"{_HERE}.score",
        inputs=("project", "fit"),
        axes=("learner",),
        params=("epsilon", "learner.label", "label", "project.judge", *_ROLES),
        tables=("scores",),
        side="client (study)",
    ),
)


def releases(config: dict[str, Any], d: int) -> list[Release]:
    """Return the one thing that this protocol would ask for: everything."""
    what = f"{d} numbers and the label as they are"
    return [Release("training client", what, "none", "no privacy", study_only=True)]
