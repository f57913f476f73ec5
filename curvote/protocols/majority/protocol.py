"""The chain of `majority` as data: noised labels, then the class that they elect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from curvote.protocols.direct.protocol import AGGREGATE, RELEASED, ROLES, SCORE, WHO
from curvote.protocols.majority.messages import Label
from curvote.protocols.stage import Release, Stage

__all__ = ["MESSAGES", "PRODUCTION", "STAGES", "releases"]

MESSAGES = {"report": Label()}

_HERE = "curvote.protocols.majority"

_AGGREGATE = replace(AGGREGATE, module=f"{_HERE}.aggregate")

STAGES = (
    Stage(
        "privatize",
        f"{_HERE}.privatize",
        inputs=("project",),
        axes=("epsilon",),
        params=("epsilon", *ROLES),
        tables=("labels",),
        side="client -> server",
    ),
    _AGGREGATE,
    replace(SCORE, params=("epsilon", "label", "protocol", *ROLES)),
)
PRODUCTION = (
    replace(
        RELEASED,
        params=("epsilon", "protocol", "project.judge", *WHO),
        tables=("labels",),
    ),
    _AGGREGATE,
)


def releases(config: dict[str, Any], d: int) -> list[Release]:
    """Return the messages of each client in words, for every epsilon of a pipeline."""
    detail = "the whole of it; none of the numbers is sent"
    return [Release("every client", "one noised label", "binary_rr", "epsilon", detail)]
