"""System of cells: its tables and stages, by method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel

from curvote.base.errors import Problem, UserError
from curvote.chain.axis import PipelineSettings
from curvote.chain.measure import Method
from curvote.chain.stage import VECTOR, Stage, Table
from curvote.chain.system import System
from curvote.data import lookup
from curvote.messages.measures import ERRORS, MAJORITY
from curvote.systems.cells.messages import check_answer_count
from curvote.systems.cells.scorecard import scorecard_model, scorecard_outcome
from curvote.systems.common import checks, study
from curvote.systems.common.declarations import (
    COMMON_STAGES,
    ROLE_PARAMS,
    SECTIONS,
    client_stage,
    release_stage,
    score_stage,
    server_stage,
)
from curvote.systems.direct.system import JUDGED_BY_Z
from curvote.systems.references.messages import ComparisonLabel

_CUTS = {"of": VECTOR, "feature": VECTOR, "threshold": VECTOR}
QUESTIONS: Final = Table("questions", _CUTS, unit="question")
ANSWERS: Final = Table(
    "answers", {"question": "int64", "answer": "int64"}, unit="message"
)
# The scores of a question are (C, K), cell by cell.
SCORECARD: Final = Table(
    "scorecard", {**_CUTS, "score": VECTOR, "n": "int64"}, unit="question"
)


Cells = Callable[[PipelineSettings], int]

_STAGES = "curvote.systems.cells.stages"


def cell_system(
    method: Method,
    settings: type[BaseModel],
    messages: Mapping[str, Any],
    size: tuple[str, Cells],
    *drawing: str,
) -> System:
    """Return the system named as its ``method``, in the folder of that name.

    ``size`` is the key of its section that says how many cells or questions there are,
    and the number of cells that settings ask for; ``drawing`` are further keys that its
    questions depend on.
    """
    key, cells = size
    stages = _cell_stages(method.name, (f"{method.name}.{key}", *drawing))
    return System(
        name=method.name,
        settings=settings,
        stages=(*COMMON_STAGES, *stages, _report_stage(method.name)),
        production=(*COMMON_STAGES, *_production_stages(stages)),
        messages=messages,
        study_messages=(ComparisonLabel().describe,),
        metrics=ERRORS,
        methods=(method, MAJORITY),
        main=(method.name,),
        checks=checks.combine_checks(
            checks.check_test_clients,
            classes=_cell_count_check(method.name, key, cells),
        ),
        shorthand=(key,),
        implied_settings=JUDGED_BY_Z,
        final_model=scorecard_model,
        production_metrics=scorecard_outcome,
        sections=SECTIONS,
    )


def _cell_stages(name: str, params: tuple[str, ...]) -> tuple[Stage, Stage, Stage]:
    # No client has a part in the questions: every epsilon shares them.
    inputs = ("project",)
    train = server_stage(
        "train",
        f"{_STAGES}:ask_{name}",
        inputs,
        QUESTIONS,
        axes=(),
        params=params,
    )
    privatize = client_stage(
        "privatize",
        f"{_STAGES}:privatize_{name}",
        ANSWERS,
        ("project", "train"),
    )
    aggregate_inputs = ("project", "train", "privatize")
    return (
        train,
        privatize,
        server_stage(
            "aggregate",
            f"{_STAGES}:aggregate_{name}",
            aggregate_inputs,
            SCORECARD,
        ),
    )


def _production_stages(stages: tuple[Stage, Stage, Stage]) -> tuple[Stage, ...]:
    train, privatize, aggregate = stages
    inputs = ("ingest", "project", "train")
    release = release_stage(privatize, "report", inputs, ("project.judge",))
    return train, release, aggregate


def _report_stage(name: str) -> Stage:
    return score_stage(
        f"{_STAGES}:score_{name}",
        ("project", "aggregate"),
        params=("epsilon", *ROLE_PARAMS),
        beside=(study.CONFUSION,),
    )


def _cell_count_check(section: str, key: str, cells: Cells) -> checks.Check:
    """Return a check for no more cells and classes than one word tells."""

    def check_cells(pipeline: PipelineSettings) -> Iterator[Problem]:
        named = lookup.classes(pipeline.source) or ("one", "other")
        try:
            check_answer_count(cells(pipeline), len(named))
        except UserError as error:
            yield Problem(str(error), (section, key))

    return check_cells
