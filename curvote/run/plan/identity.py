"""What names a step of production: what was asked and who, never who computed it.

A study's key holds code and library versions, so that a change recomputes. In
production that would release again; there the steps up to the last message are named by
(what the pipeline asks, cohort, release number) and are computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Here
from curvote.protocols.message import messages
from curvote.protocols.roles import ROLES, set_aside, split
from curvote.protocols.stages import ingest
from curvote.run.config.file import Configured
from curvote.run.config.schema import Pipeline
from curvote.run.plan import fingerprint


def asked(pipeline: Pipeline) -> dict[str, Any]:
    """Return what the pipeline says, without what it leaves to defaults.

    A later version may bring new settings: their defaults must not rename what was
    released before them.
    """
    return pipeline.model_dump(mode="json", exclude_defaults=True)


@dataclass(frozen=True)
class People:
    """The clients of a pipeline, whatever their curves look like.

    ``cohort`` is the digest of who plays which role, ``senders`` the ids of those who
    release something, ``everybody`` all ids of the source.
    """

    cohort: str
    senders: NDArray[np.int64]
    everybody: NDArray[np.int64]


def people(configured: Configured, paths: Mapping[str, str]) -> People:
    """Return who takes part; reads the source's ids, not its curves."""
    pipeline = configured.pipeline
    sizes: dict[str, int] = pipeline.clients.model_dump()
    params = {"source": pipeline.source, "clients": sizes, "seed": pipeline.seed}
    params["raw.paths"] = paths
    who = _who(params)
    ids, groups = who["client_id"], who["group"]
    known = groups if pipeline.source.get("groups") else None
    roles = split(pipeline.seed, 0, len(ids), sizes, known, aside=set_aside(who))
    members = {role: sorted(ids[roles[role]].tolist()) for role in ROLES}
    digest = fingerprint.of_json({"population": pipeline.population, **members})
    rows = [m.senders.rows(roles) for m in messages(pipeline.protocol).values()]
    return People(digest, ids[np.unique(np.concatenate(rows))], ids)


def _who(params: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return what is public of all clients, without holding all their curves."""
    if ingest.is_simulated(params):
        here = Here("ingest", (0,), (1,), {}, params, {})
        parts = [ingest.one(here)["clients"]]
    else:
        parts = [piece["clients"] for piece in _thin(ingest.pieces({}, params, {}))]
    names = [name for name in ("client_id", "group", "part") if name in parts[0]]
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def _thin(pieces: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for piece in pieces:
        yield {"clients": piece["clients"] | {"curve": None}}


def key(identity: Mapping[str, Any]) -> str:
    """Return the name of a step."""
    return fingerprint.of_json(identity)[:32]
