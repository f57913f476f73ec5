"""The chain of `votes` as data: public directions, one vote a client, weights."""

from __future__ import annotations

from typing import Any

from curvote.protocols.direct.protocol import ROLES, WHO, majority_label
from curvote.protocols.stage import Release, Stage
from curvote.protocols.votes.messages import Vote

__all__ = ["MESSAGES", "PRODUCTION", "STAGES", "releases"]

MESSAGES = {"vote": Vote()}

_HERE = "curvote.protocols.votes"

# No client has a part in it: every epsilon shares the directions.
_TRAIN = Stage(
    "train",
    f"{_HERE}.train",
    inputs=("project",),
    params=("votes.directions", "direct.intercept", "seed", "replicates"),
    tables=("weak",),
    side="server",
)
_AGGREGATE = Stage(
    "aggregate",
    f"{_HERE}.aggregate",
    inputs=("evaluate",),
    axes=("epsilon",),
    params=("replicates",),
    tables=("ensemble",),
    side="server",
)

STAGES = (
    _TRAIN,
    Stage(
        "evaluate",
        f"{_HERE}.evaluate",
        inputs=("project", "train"),
        axes=("epsilon",),
        params=("epsilon", *ROLES),
        tables=("votes",),
        side="client -> server",
    ),
    _AGGREGATE,
    Stage(
        "report",
        f"{_HERE}.score",
        inputs=("project", "train", "aggregate"),
        axes=("epsilon",),
        params=("epsilon", "label", *ROLES),
        tables=("scores",),
        side="client (study)",
    ),
)
PRODUCTION = (
    _TRAIN,
    Stage(
        "evaluate",
        "curvote.protocols.stages.released",
        inputs=("ingest", "project", "train"),
        axes=("epsilon",),
        params=("epsilon", "protocol", "project.judge", *WHO),
        tables=("votes",),
        side="client -> server",
        message="vote",
    ),
    _AGGREGATE,
)


def releases(config: dict[str, Any], d: int) -> list[Release]:
    """Return the messages of each client in words, for every epsilon of a pipeline."""
    what = 'one noised bit: "the direction was right for me"'
    detail = "each judges one random direction, once, with the whole budget"
    vote = Release("every client", what, "binary_rr", "epsilon", detail)
    return [vote, majority_label()]
