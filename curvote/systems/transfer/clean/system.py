"""Settings of `transfer_clean`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from curvote.chain.axis import EPSILON
from curvote.chain.measure import Look, Method
from curvote.chain.settings import Strict
from curvote.chain.system import MessageDescription, System
from curvote.systems.common.declarations import DATASETS, INGEST, PROJECT, score_stage
from curvote.systems.common.settings import Representation
from curvote.systems.transfer import settings
from curvote.systems.transfer.checks import check_servers
from curvote.systems.transfer.measures import METRICS
from curvote.systems.transfer.settings import DEFAULT_PROJECT, Dealt, Volunteers


class Settings(Strict):
    """Who holds which records; there is no epsilon."""

    clients: Volunteers = Volunteers()
    project: Representation = DEFAULT_PROJECT
    transfer: Dealt = Dealt()


POOLED: Final = Method(
    "pooled",
    "pooled, clean",
    "Logistic regression on the records of all servers together, without any noise.",
    Look("#22262b", "P", line=(0, (5, 2)), size=5.2),
    rank=770,
    study_only=True,
    reference=True,
)
TARGET: Final = Method(
    "target",
    "target, clean",
    "Logistic regression on the target's own records, without any noise.",
    Look("#22262b", "X", line=(0, (1, 2)), size=5.2),
    rank=780,
    study_only=True,
    reference=True,
)
METHODS: Final = (POOLED, TARGET)


_SCORE = score_stage(
    "curvote.systems.transfer.clean.stages:report",
    ("project",),
    axes=(),
    params=(*settings.ALLOCATION_SETTINGS, "target", "transfer.test", "replicates"),
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
        "target": settings.target_name(*sections),
        "names": settings.server_names(*sections),
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
