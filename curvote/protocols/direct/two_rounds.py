"""The chain of `direct` in two rounds as data: whitening, then reports in its terms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from curvote.protocols.direct.messages import Direction, Refinement
from curvote.protocols.direct.privatize import SENDERS
from curvote.protocols.direct.protocol import (
    AGGREGATE,
    RELEASED,
    REPORTS,
    ROLES,
    SCORE,
    WHO,
    direction,
    majority_label,
)
from curvote.protocols.stage import Release, Stage

__all__ = ["MESSAGES", "PRODUCTION", "STAGES", "releases"]

MESSAGES = {"report": Direction(SENDERS["two"]), "refinement": Refinement()}

_HERE = "curvote.protocols.direct"
_WHITEN = Stage(
    "whiten",
    f"{_HERE}.whiten",
    inputs=("privatize",),
    axes=("epsilon",),
    params=("replicates",),
    tables=("whitening",),
    side="server",
)
_REFINE = Stage(
    "refine",
    f"{_HERE}.refine",
    inputs=("project", "whiten"),
    axes=("epsilon",),
    params=ROLES,
    tables=("directions",),
    side="client -> server",
)
_COMBINE = replace(
    AGGREGATE, module=f"{_HERE}.combine", inputs=("privatize", "whiten", "refine")
)

STAGES = (REPORTS, _WHITEN, _REFINE, _COMBINE, SCORE)
PRODUCTION = (
    RELEASED,
    _WHITEN,
    replace(
        RELEASED,
        name="refine",
        inputs=("ingest", "privatize", "whiten"),
        params=("epsilon", "protocol", *WHO),
        message="refinement",
    ),
    _COMBINE,
)


def releases(config: dict[str, Any], d: int) -> list[Release]:
    """Return the messages of each client in words, for every epsilon of a pipeline."""
    first, second = "to centre and whiten the numbers", "in the new coordinates"
    return [
        direction("client of the first round", first),
        direction("client of the second round", second),
        majority_label(),
    ]
