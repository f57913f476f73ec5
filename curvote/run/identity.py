"""What names a step of production: what was asked and who, never who computed it.

A study's key holds code and library versions, so that a change recomputes. In
production that would release again; there the steps up to the last message are named by
(what the pipeline asks, cohort, release number) and are computed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from curvote.protocols.roles import ROLES, split
from curvote.run import fingerprint
from curvote.run.config import Configured
from curvote.run.schema import Pipeline
from curvote.run.stages import ingest


def asked(pipeline: Pipeline) -> dict[str, Any]:
    """Return what the pipeline says, without what it leaves to defaults.

    A later version may bring new settings: their defaults must not rename what was
    released before them.
    """
    return pipeline.model_dump(mode="json", exclude_defaults=True)


def cohort(configured: Configured, raw_path: str | None) -> str:
    """Return the digest of who plays which role, whatever their curves look like."""
    pipeline = configured.pipeline
    sizes: dict[str, int] = pipeline.clients.model_dump()
    params = {"source": pipeline.source, "clients": sizes, "seed": pipeline.seed}
    params["raw.path"] = raw_path
    (rows,) = ingest.block((0,), {}, params, {})["clients"]
    ids = np.asarray(rows["client_id"])
    groups = rows["group"] if pipeline.source.get("groups") else None
    roles = split(pipeline.seed, 0, len(ids), sizes, groups)
    members = {role: sorted(ids[roles[role]].tolist()) for role in ROLES}
    return fingerprint.of_json({"population": pipeline.population, **members})


def key(identity: Mapping[str, Any]) -> str:
    """Return the name of a step."""
    return fingerprint.of_json(identity)[:32]
