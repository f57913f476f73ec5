"""System `mrma_classes`: `mrma` of a source with three or more classes.

Its rows keep the label `mrma`.
"""

from __future__ import annotations

from dataclasses import replace

from curvote.chain.system import Part
from curvote.protocols.by_class import CONFUSION
from curvote.protocols.mrma import system as mrma
from curvote.protocols.mrma_classes.messages import MESSAGES
from curvote.protocols.mrma_classes.tables import CLASS_REPORTS
from curvote.protocols.stages.declared import COMMON_STAGES

_HERE = "curvote.protocols.mrma_classes"
_PRIVATIZE = replace(
    mrma.PRIVATIZE, module=f"{_HERE}.privatize", tables=(CLASS_REPORTS,)
)
_TRAIN = replace(
    mrma.TRAIN, module=f"{_HERE}.train", inputs=("project", *mrma.TRAIN.inputs)
)
_EVALUATE = replace(mrma.EVALUATE, module=f"{_HERE}.evaluate")
_AGGREGATE = replace(
    mrma.AGGREGATE,
    module=f"{_HERE}.aggregate",
    inputs=("project", *mrma.AGGREGATE.inputs),
)
_RELEASE = replace(mrma.RELEASE, tables=(CLASS_REPORTS,))
_SCORE = replace(
    mrma.SCORE, module=f"{_HERE}.score", tables=(*mrma.SCORE.tables, CONFUSION)
)

SYSTEM = replace(
    mrma.SYSTEM,
    name="mrma_classes",
    stages=(
        *COMMON_STAGES,
        _PRIVATIZE,
        _TRAIN,
        _EVALUATE,
        _AGGREGATE,
        _SCORE,
        mrma.BASELINE,
    ),
    production=(*COMMON_STAGES, _RELEASE, _TRAIN, mrma.RELEASE_VOTES, _AGGREGATE),
    messages=MESSAGES,
    resolve_parts=lambda settings: (Part(settings),),
)
