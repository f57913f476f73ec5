"""Transfer between servers as data.

A release is made for each server by itself, so that another budget for one of them is
none for the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from curvote.chain.axis import EPSILON, Axis
from curvote.chain.axis import Settings as Given
from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.protocols.stages.declared import (
    DATA_SET,
    DATASETS,
    INGEST,
    PROJECT,
    scored,
)
from curvote.protocols.transfer import combining, stated
from curvote.protocols.transfer.asked import asked
from curvote.protocols.transfer.checks import checks
from curvote.protocols.transfer.choosing import parts
from curvote.protocols.transfer.final import final
from curvote.protocols.transfer.messages import MESSAGES
from curvote.protocols.transfer.methods import METHODS, METRICS
from curvote.protocols.transfer.settings import Settings
from curvote.protocols.transfer.tables import CROSSED, RELEASES, WEIGHTS
from curvote.transfer.task import ASKS

_HERE = "curvote.protocols.transfer.stages"
_AXES = ("epsilon",)
_WHO = stated.WHO
_MODEL = combining.PARAMS
_PLUGINS = (("curvote.transfer.forms.registry:FORMS", "transfer.release"), DATASETS)


def _servers(settings: Given) -> list[str]:
    values = settings.model_dump(mode="json")
    return stated.names(values["source"], values["transfer"])


SERVER = Axis("server", _servers, key="transfer.servers")

_PRIVATIZE = Stage(
    "privatize",
    f"{_HERE}.privatize",
    inputs=("project",),
    axes=("epsilon", "server"),
    params=(
        *("asked", "server", "held_out", "fault"),
        *(*_WHO, "replicates"),
    ),
    plugins=_PLUGINS,
    tables=(RELEASES,),
    side="client -> server",
)
_AGGREGATE = Stage(
    "aggregate",
    f"{_HERE}.aggregate",
    inputs=("project", "privatize@server"),
    axes=_AXES,
    params=(*_MODEL, "replicates"),
    plugins=_PLUGINS,
    tables=(WEIGHTS,),
    side="server",
)
_RELEASED = replace(
    _PRIVATIZE,
    params=("asked", "server", "columns", "project", "seed", "protocol"),
    message=ASKS,
    collected=f"{_HERE}.collected",
)
# Whoever is the target: nobody releases anything anew.
_COMBINED = replace(_AGGREGATE, params=(*_AGGREGATE.params, "transfer.target"))
_SCORE = scored(
    f"{_HERE}.score",
    ("project", "privatize@server", "aggregate"),
    _AXES,
    (*_MODEL, *_WHO, "transfer.test", "replicates"),
    plugins=_PLUGINS,
)


def _crossed(settings: Given, values: Mapping[str, Any]) -> bool:
    return bool(settings.transfer.matrix == values["epsilon"])


_CROSSED = Stage(
    "crossed",
    f"{_HERE}.crossed",
    inputs=("project", "privatize@server"),
    axes=_AXES,
    params=(*_MODEL, *_WHO, "transfer.test", "replicates"),
    plugins=_PLUGINS,
    tables=(CROSSED,),
    side="client (study)",
    when=_crossed,
)
_PAGE = "curvote.reporting.sections.transfer"

SYSTEM = System(
    name="transfer",
    settings=Settings,
    stages=(INGEST, PROJECT, _PRIVATIZE, _AGGREGATE, _SCORE, _CROSSED),
    production=(INGEST, PROJECT, _RELEASED, _COMBINED),
    axes=(EPSILON, SERVER),
    messages=MESSAGES,
    asked=asked,
    metrics=METRICS,
    methods=METHODS,
    main=tuple(method.name for method in METHODS),
    checks=checks,
    parts=parts,
    spelled=stated.spelled,
    short=("release", "params", "weights", "decide", "matrix"),
    final=final,
    sections=(
        DATA_SET,
        *(f"{_PAGE}.{name}" for name in ("measures", "crossed", "weighing")),
        *(f"{_PAGE}.{name}" for name in ("released", "worth")),
    ),
)
