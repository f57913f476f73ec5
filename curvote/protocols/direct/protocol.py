"""The chain of `direct` in one round as data: reports, then their mean.

Arms ``mean`` and ``joint``; see `two_rounds` for ``two``.
"""

from __future__ import annotations

from typing import Any

from curvote.protocols.direct.messages import Direction
from curvote.protocols.stage import Release, Stage

__all__ = ["MESSAGES", "PRODUCTION", "STAGES", "releases"]

MESSAGES = {"report": Direction()}

_HERE = "curvote.protocols.direct"
WHO = ("clients", "source.groups", "seed")
ROLES = (*WHO, "replicates")
TERMS = ("epsilon", "direct.arm", "direct.intercept")

REPORTS = Stage(
    "privatize",
    f"{_HERE}.privatize",
    inputs=("project",),
    axes=("epsilon",),
    params=(*TERMS, *ROLES),
    tables=("directions",),
    side="client -> server",
)
RELEASED = Stage(
    "privatize",
    "curvote.protocols.stages.released",
    inputs=("ingest", "project"),
    axes=("epsilon",),
    params=(*TERMS, "protocol", "project.judge", *WHO),
    tables=("directions",),
    side="client -> server",
    message="report",
)
AGGREGATE = Stage(
    "aggregate",
    f"{_HERE}.aggregate",
    inputs=("privatize",),
    axes=("epsilon",),
    params=("replicates",),
    tables=("classifier",),
    side="server",
)
SCORE = Stage(
    "report",
    f"{_HERE}.score",
    inputs=("project", "aggregate"),
    axes=("epsilon",),
    params=("epsilon", "label", "protocol", "direct.arm", *ROLES),
    tables=("scores",),
    side="client (study)",
)

STAGES = (REPORTS, AGGREGATE, SCORE)
PRODUCTION = (RELEASED, AGGREGATE)


def releases(config: dict[str, Any], d: int) -> list[Release]:
    """Return the messages of each client in words, for every epsilon of a pipeline."""
    return [direction("every client", "the whole of it"), majority_label()]


def direction(who: str, detail: str) -> Release:
    """Return a report in words."""
    what = "one noised direction, made of its numbers and its label"
    return Release(who, what, "privunit", "epsilon", detail)


def majority_label() -> Release:
    """Return what a study asks for beside the protocol's own messages."""
    return Release(
        "every client",
        "one noised label",
        "binary_rr",
        "epsilon",
        "for majority, the constant classifier that a method must beat",
        study_only=True,
    )
