"""System `mrma_classes`: `mrma` of a source with three or more classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from curvote.chain.stage import Table
from curvote.chain.system import Part
from curvote.systems.common.declarations import COMMON_STAGES
from curvote.systems.common.study import CONFUSION
from curvote.systems.common.tables import REPORTS
from curvote.systems.mrma import system as mrma
from curvote.systems.mrma.classes.messages import MESSAGES

CLASS_REPORTS: Final = Table(
    "class_reports", {**REPORTS.columns, "question": "int64"}, unit="message"
)


_PRIVATIZE = replace(
    mrma.PRIVATIZE,
    module="curvote.systems.mrma.classes.stages:privatize_classes",
    tables=(CLASS_REPORTS,),
)
_TRAIN = replace(
    mrma.TRAIN,
    module="curvote.systems.mrma.classes.stages:train_classes",
    inputs=("project", *mrma.TRAIN.inputs),
)
_EVALUATE = replace(
    mrma.EVALUATE, module="curvote.systems.mrma.classes.stages:evaluate_classes"
)
_AGGREGATE = replace(
    mrma.AGGREGATE,
    module="curvote.systems.mrma.classes.stages:aggregate_classes",
    inputs=("project", *mrma.AGGREGATE.inputs),
)
_RELEASE = replace(mrma.RELEASE, tables=(CLASS_REPORTS,))
_SCORE = replace(
    mrma.SCORE,
    module="curvote.systems.mrma.classes.stages:score_classes",
    tables=(*mrma.SCORE.tables, CONFUSION),
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
