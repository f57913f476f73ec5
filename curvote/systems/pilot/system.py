"""System `pilot`: a line and a table, and clients who say which one to take."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

from curvote.base.errors import Problem
from curvote.chain.axis import PipelineSettings
from curvote.systems.cells.messages import CountsSettings, check_answer_count
from curvote.systems.cells.system import ANSWERS, QUESTIONS, SCORECARD
from curvote.systems.common import checks, declarations, models, tables
from curvote.systems.references.messages import ComparisonLabel

_STAGES: Final = "curvote.systems.pilot.stages"

_ASK = declarations.server_stage(
    "train",
    f"{_STAGES}:ask",
    ("project",),
    QUESTIONS,
    axes=(),
    params=("counts.bins",),
)
_REPORT = declarations.client_stage("privatize", _STAGES, tables.DIRECTIONS)
_ANSWER = declarations.client_stage("answer", _STAGES, ANSWERS, ("project", "train"))
_DECODE = declarations.server_stage(
    "decode",
    _STAGES,
    ("project", "train", "privatize", "answer"),
    tables.CLASSIFIER,
    SCORECARD,
    params=("source.balance",),
)
_JUDGE = declarations.client_stage(
    "evaluate", _STAGES, tables.VOTES, ("project", "decode")
)
_TAKE = declarations.server_stage("aggregate", _STAGES, ("evaluate",), tables.ENSEMBLE)
_SCORE = declarations.score_stage(
    f"{_STAGES}:score",
    ("project", "decode", "aggregate"),
    params=("epsilon", *declarations.ROLE_PARAMS),
)


def check_bins(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Require two classes, and no more cells than one word tells apart."""
    yield from checks.check_two_classes(pipeline)
    size = pipeline.counts.bins, 2
    yield from checks.refusal(("counts", "bins"), check_answer_count, *size)


def _stages() -> Any:
    return import_module(_STAGES)  # SciPy, which no plan needs


SYSTEM = declarations.learning_system(
    "pilot",
    CountsSettings,
    (_ASK, _REPORT, _ANSWER, _DECODE, _JUDGE, _TAKE, _SCORE),
    "pilot mean counts majority",
    releases=(
        declarations.release_stage(
            _REPORT, "report", ("ingest", "project"), ("project.judge",)
        ),
        *(
            declarations.release_stage(
                stage, message, ("ingest", "project", before), ("project.judge",)
            )
            for stage, message, before in (
                (_ANSWER, "answer", "train"),
                (_JUDGE, "vote", "decode"),
            )
        ),
    ),
    judge_inputs=("privatize", "decode", "aggregate"),
    classes=check_bins,
    study_messages=(ComparisonLabel().describe,),
    implied_settings=declarations.JUDGED_BY_Z,
    final_model=lambda view: _stages().taken_model(view),
    production_metrics=models.vote_outcome,
    notes=lambda views: _stages().pilot_notes(views),
)
