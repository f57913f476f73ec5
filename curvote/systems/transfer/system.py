"""Tasks that an audit examines: one for each server at each level."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from curvote.chain.axis import EPSILON, Axis, PipelineSettings
from curvote.chain.stage import Metadata, Stage
from curvote.chain.system import System
from curvote.systems.common.declarations import (
    DATA_SET,
    DATASETS,
    INGEST,
    PROJECT,
    score_stage,
)
from curvote.systems.transfer import measures
from curvote.systems.transfer import settings as stated_settings
from curvote.systems.transfer.checks import check_settings, resolve_parts
from curvote.systems.transfer.messages import MESSAGES
from curvote.systems.transfer.method.task import ASKS, Task
from curvote.systems.transfer.settings import Settings
from curvote.systems.transfer.stages import PARAMS, final_model


def audit_tasks(
    settings: PipelineSettings, read: Callable[[str], Metadata]
) -> Iterator[Task]:
    """Yield the task of each server that adds noise, at each epsilon."""
    public, values = read("project"), settings.model_dump(mode="json")
    for epsilon in settings.epsilon:
        levels = stated_settings.normalize(values | {"epsilon": epsilon})["told"]
        every = stated_settings.build_task(public, levels, values)
        for name, level in every.servers.items():
            if level.noised:
                yield every.for_server(name)


_STAGES = "curvote.systems.transfer"
_AXES = ("epsilon",)
_ALLOCATION = stated_settings.ALLOCATION_SETTINGS
_PLUGINS = (
    ("curvote.systems.transfer.method.task:FORMS", "transfer.release"),
    DATASETS,
)


def _axis_servers(settings: PipelineSettings) -> list[str]:
    """Return the server names of the axis."""
    values = settings.model_dump(mode="json")
    return stated_settings.server_names(values["source"], values["transfer"])


SERVER = Axis("server", _axis_servers, key="transfer.servers")

_PRIVATIZE = Stage(
    "privatize",
    "curvote.systems.transfer.stages:privatize",
    inputs=("project",),
    axes=("epsilon", "server"),
    params=(
        *("asked", "server", "held_out", "fault"),
        *(*_ALLOCATION, "replicates"),
    ),
    plugins=_PLUGINS,
    tables=(measures.RELEASES,),
    side="client -> server",
)
_AGGREGATE = Stage(
    "aggregate",
    "curvote.systems.transfer.stages:aggregate",
    inputs=("project", "privatize@server"),
    axes=_AXES,
    params=(*PARAMS, "replicates"),
    plugins=_PLUGINS,
    tables=(measures.WEIGHTS,),
    side="server",
)
_RELEASED = replace(
    _PRIVATIZE,
    params=("asked", "server", "columns", "project", "seed", "protocol"),
    message=ASKS,
    collected="curvote.systems.transfer.stages:collected",
)
# Whoever is the target: nobody releases anything anew.
_COMBINED = replace(_AGGREGATE, params=(*_AGGREGATE.params, "transfer.target"))
_SCORE = score_stage(
    "curvote.systems.transfer.stages:report",
    ("project", "privatize@server", "aggregate"),
    _AXES,
    (*PARAMS, *_ALLOCATION, "transfer.test", "replicates"),
    plugins=_PLUGINS,
)


def _has_matrix(settings: PipelineSettings, values: Mapping[str, Any]) -> bool:
    """Return whether the train-test matrix is made at this epsilon."""
    return bool(settings.transfer.matrix == values["epsilon"])


_CROSSED = Stage(
    "crossed",
    "curvote.systems.transfer.stages:crossed",
    inputs=("project", "privatize@server"),
    axes=_AXES,
    params=(*PARAMS, *_ALLOCATION, "transfer.test", "replicates"),
    plugins=_PLUGINS,
    tables=(measures.CROSSED,),
    side="client (study)",
    when=_has_matrix,
)
_PAGE = "curvote.systems.transfer"

SYSTEM = System(
    name="transfer",
    settings=Settings,
    stages=(INGEST, PROJECT, _PRIVATIZE, _AGGREGATE, _SCORE, _CROSSED),
    production=(INGEST, PROJECT, _RELEASED, _COMBINED),
    axes=(EPSILON, SERVER),
    messages=MESSAGES,
    audit_tasks=audit_tasks,
    metrics=measures.METRICS,
    methods=measures.METHODS,
    main=tuple(method.name for method in measures.METHODS),
    checks=check_settings,
    resolve_parts=resolve_parts,
    normalize=stated_settings.normalize,
    shorthand=("release", "params", "weights", "decide", "matrix"),
    final_model=final_model,
    sections=(
        DATA_SET,
        f"{_PAGE}.page:gather_measures",
        f"{_PAGE}.page:gather_crossed",
        f"{_PAGE}.page:gather_weights",
        f"{_PAGE}.page:gather_releases",
        f"{_PAGE}.page:gather_worth",
    ),
)
