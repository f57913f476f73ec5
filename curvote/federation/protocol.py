"""The chain of many servers as data: every stage but the last once for each server.

Instance i stands for server i mod K of replicate i div K; the stages of a single server
run on instances as they are. Clients send a single server's messages; under ``budget``
an evaluation client sends two votes, each with half of its epsilon.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from curvote.protocols.mrma import protocol as mrma
from curvote.protocols.mrma.messages import MESSAGES
from curvote.protocols.stage import Release, Stage

__all__ = ["MESSAGES", "PRODUCTION", "STAGES", "releases"]

PRODUCTION: tuple[Stage, ...] = ()

_HERE = "curvote.federation"
_MRMA = {stage.name: stage for stage in mrma.STAGES}
_ROLES = ("clients", "source.groups", "seed", "replicates", "servers")
_VOTE = ("epsilon", "federation.split", "train.count", "project.judge", *_ROLES)
_CELL = ("epsilon", "learner")


def _as_is(name: str) -> Stage:
    """Return a single server's stage, repeated for every server."""
    stage = _MRMA[name]
    return replace(stage, params=(*stage.params, "servers"))


_AGGREGATE = _as_is("aggregate")

STAGES = (
    replace(_as_is("privatize"), module=f"{_HERE}.privatize"),
    _as_is("train"),
    Stage(
        "evaluate",
        f"{_HERE}.evaluate",
        inputs=("project", "train"),
        axes=_CELL,
        params=_VOTE,
        tables=("votes",),
        side="client -> server",
    ),
    _AGGREGATE,
    Stage(
        "exchange",
        f"{_HERE}.exchange",
        inputs=("train", "aggregate"),
        axes=_CELL,
        params=("federation.split", "federation.faults", "replicates", "servers"),
        tables=("offers",),
        side="server -> servers",
    ),
    Stage(
        "reevaluate",
        f"{_HERE}.reevaluate",
        inputs=("project", "exchange"),
        axes=_CELL,
        params=_VOTE,
        tables=("votes",),
        side="client -> server",
    ),
    replace(
        _AGGREGATE,
        name="combine",
        module=f"{_HERE}.combine",
        inputs=("reevaluate",),
        params=(*_AGGREGATE.params, "federation.split", "federation.cutoff"),
    ),
    Stage(
        "report",
        f"{_HERE}.report",
        inputs=("project", "aggregate", "exchange", "combine"),
        axes=_CELL,
        params=("epsilon", "learner.label", "label", "project.judge", *_ROLES),
        tables=("scores",),
        side="client (study)",
    ),
)

_ASKED = {
    "clients": (("epsilon", "judges one own classifier or one of the servers', once"),),
    "budget": (
        ("epsilon / 2", "judges one of its server's own classifiers"),
        ("epsilon / 2", "judges one of the servers' classifiers"),
    ),
    "single": (("epsilon", "judges one of its server's own classifiers, once"),),
}


def releases(config: dict[str, Any], d: int) -> list[Release]:
    """Return the messages of each client in words, for every epsilon of a pipeline."""
    what = 'one noised bit: "the classifier was right for me"'
    votes = (
        Release("evaluation client", what, "binary_rr", epsilon, detail)
        for epsilon, detail in _ASKED[config["federation"]["split"]]
    )
    return [*mrma.releases_reports(config, d), *votes]
