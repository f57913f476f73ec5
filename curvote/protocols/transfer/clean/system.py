"""System `transfer_clean` as data: the comparison without privacy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curvote.chain.axis import EPSILON
from curvote.chain.sent import MessageDescription
from curvote.chain.system import System
from curvote.protocols.stages.declared import DATASETS, INGEST, PROJECT, score_stage
from curvote.protocols.transfer import stated
from curvote.protocols.transfer.checks import check_servers
from curvote.protocols.transfer.clean.methods import METHODS
from curvote.protocols.transfer.clean.settings import Settings
from curvote.protocols.transfer.methods import METRICS

_SCORE = score_stage(
    "curvote.protocols.transfer.clean.score",
    ("project",),
    axes=(),
    params=(*stated.ALLOCATION_SETTINGS, "target", "transfer.test", "replicates"),
    plugins=(DATASETS,),
    libraries=("scikit-learn",),
)


def describe_records(config: Mapping[str, Any], d: int) -> list[MessageDescription]:
    """Return the description of a request for everything."""
    what = f"{d} numbers and the class of every record, as they are"
    return [
        MessageDescription(
            "each server", what, "none", epsilon="no privacy", party="server"
        )
    ]


def normalize(values: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with target and server names filled in."""
    sections = values["source"], values["transfer"]
    return values | {
        "target": stated.target_name(*sections),
        "names": stated.server_names(*sections),
    }


# No model is kept: it would be fitted on what no server ever sends.
SYSTEM = System(
    name="transfer_clean",
    settings=Settings,
    stages=(INGEST, PROJECT, _SCORE),
    axes=(),
    x=EPSILON,
    study_messages=(describe_records,),
    metrics=METRICS,
    methods=METHODS,
    main=tuple(method.name for method in METHODS),
    checks=check_servers,
    normalize=normalize,
)
