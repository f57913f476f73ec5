"""The comparison without privacy as data: records that no server would ever send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curvote.chain.axis import EPSILON
from curvote.chain.sent import Sent
from curvote.chain.system import System
from curvote.protocols.stages.declared import DATASETS, INGEST, PROJECT, scored
from curvote.protocols.transfer import stated
from curvote.protocols.transfer.checks import dealt
from curvote.protocols.transfer.clean.methods import METHODS
from curvote.protocols.transfer.clean.settings import Settings
from curvote.protocols.transfer.methods import METRICS

_SCORE = scored(
    "curvote.protocols.transfer.clean.score",
    ("project",),
    axes=(),
    params=(*stated.WHO, "target", "transfer.test", "replicates"),
    plugins=(DATASETS,),
    libraries=("scikit-learn",),
)


def records(config: Mapping[str, Any], d: int) -> list[Sent]:
    """Return in words the one thing that this system would ask for: everything."""
    what = f"{d} numbers and the class of every record, as they are"
    return [Sent("each server", what, "none", epsilon="no privacy", party="server")]


def spelled(values: dict[str, Any]) -> dict[str, Any]:
    """Add who wants a classifier, and who holds records."""
    given = values["source"], values["transfer"]
    return values | {"target": stated.target(*given), "names": stated.names(*given)}


# No model is kept: it would be fitted on what no server ever sends.
SYSTEM = System(
    name="transfer_clean",
    settings=Settings,
    stages=(INGEST, PROJECT, _SCORE),
    axes=(),
    x=EPSILON,
    compared=(records,),
    metrics=METRICS,
    methods=METHODS,
    main=tuple(method.name for method in METHODS),
    checks=dealt,
    spelled=spelled,
)
