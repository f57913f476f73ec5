"""System `transfer` as data.

A release is made for each server by itself, so that another budget for one of them is
none for the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from curvote.chain.axis import EPSILON, Axis
from curvote.chain.axis import PipelineSettings as Given
from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.protocols.stages.declared import (
    DATA_SET,
    DATASETS,
    INGEST,
    PROJECT,
    score_stage,
)
from curvote.protocols.transfer import combining, stated
from curvote.protocols.transfer.asked import audit_tasks
from curvote.protocols.transfer.checks import check_settings
from curvote.protocols.transfer.choosing import resolve_parts
from curvote.protocols.transfer.final import final_model
from curvote.protocols.transfer.messages import MESSAGES
from curvote.protocols.transfer.methods import METHODS, METRICS
from curvote.protocols.transfer.settings import Settings
from curvote.protocols.transfer.tables import CROSSED, RELEASES, WEIGHTS
from curvote.transfer.task import ASKS

_STAGES = "curvote.protocols.transfer.stages"
_AXES = ("epsilon",)
_ALLOCATION = stated.ALLOCATION_SETTINGS
_MODEL_SETTINGS = combining.PARAMS
_PLUGINS = (("curvote.transfer.forms.registry:FORMS", "transfer.release"), DATASETS)


def _axis_servers(settings: Given) -> list[str]:
    """Return the server names of the axis."""
    values = settings.model_dump(mode="json")
    return stated.server_names(values["source"], values["transfer"])


SERVER = Axis("server", _axis_servers, key="transfer.servers")

_PRIVATIZE = Stage(
    "privatize",
    f"{_STAGES}.privatize",
    inputs=("project",),
    axes=("epsilon", "server"),
    params=(
        *("asked", "server", "held_out", "fault"),
        *(*_ALLOCATION, "replicates"),
    ),
    plugins=_PLUGINS,
    tables=(RELEASES,),
    side="client -> server",
)
_AGGREGATE = Stage(
    "aggregate",
    f"{_STAGES}.aggregate",
    inputs=("project", "privatize@server"),
    axes=_AXES,
    params=(*_MODEL_SETTINGS, "replicates"),
    plugins=_PLUGINS,
    tables=(WEIGHTS,),
    side="server",
)
_RELEASED = replace(
    _PRIVATIZE,
    params=("asked", "server", "columns", "project", "seed", "protocol"),
    message=ASKS,
    collected=f"{_STAGES}.collected",
)
# Whoever is the target: nobody releases anything anew.
_COMBINED = replace(_AGGREGATE, params=(*_AGGREGATE.params, "transfer.target"))
_SCORE = score_stage(
    f"{_STAGES}.score",
    ("project", "privatize@server", "aggregate"),
    _AXES,
    (*_MODEL_SETTINGS, *_ALLOCATION, "transfer.test", "replicates"),
    plugins=_PLUGINS,
)


def _has_matrix(settings: Given, values: Mapping[str, Any]) -> bool:
    """Return whether the train-test matrix is made at this epsilon."""
    return bool(settings.transfer.matrix == values["epsilon"])


_CROSSED = Stage(
    "crossed",
    f"{_STAGES}.crossed",
    inputs=("project", "privatize@server"),
    axes=_AXES,
    params=(*_MODEL_SETTINGS, *_ALLOCATION, "transfer.test", "replicates"),
    plugins=_PLUGINS,
    tables=(CROSSED,),
    side="client (study)",
    when=_has_matrix,
)
_PAGE = "curvote.reporting.sections.transfer"

SYSTEM = System(
    name="transfer",
    settings=Settings,
    stages=(INGEST, PROJECT, _PRIVATIZE, _AGGREGATE, _SCORE, _CROSSED),
    production=(INGEST, PROJECT, _RELEASED, _COMBINED),
    axes=(EPSILON, SERVER),
    messages=MESSAGES,
    audit_tasks=audit_tasks,
    metrics=METRICS,
    methods=METHODS,
    main=tuple(method.name for method in METHODS),
    checks=check_settings,
    resolve_parts=resolve_parts,
    normalize=stated.normalize,
    shorthand=("release", "params", "weights", "decide", "matrix"),
    final_model=final_model,
    sections=(
        DATA_SET,
        *(f"{_PAGE}.{name}" for name in ("measures", "crossed", "weighing")),
        *(f"{_PAGE}.{name}" for name in ("released", "worth")),
    ),
)
