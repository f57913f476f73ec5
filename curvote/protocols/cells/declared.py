"""System of cells: its tables and stages, by method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from curvote.chain.axis import PipelineSettings
from curvote.chain.measure import Method
from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.datasets import lookup
from curvote.errors import Problem, UserError
from curvote.protocols import by_class, checks
from curvote.protocols.cells.final import scorecard_model, scorecard_outcome
from curvote.protocols.cells.messages import check_answer_count
from curvote.protocols.cells.tables import ANSWERS, QUESTIONS, SCORECARD
from curvote.protocols.direct.system import JUDGED_BY_Z
from curvote.protocols.majority.messages import ComparisonLabel
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS
from curvote.protocols.stages.declared import (
    COMMON_STAGES,
    ROLE_PARAMS,
    SECTIONS,
    client_stage,
    release_stage,
    score_stage,
    server_stage,
)

Cells = Callable[[PipelineSettings], int]


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
    package, (key, cells) = f"curvote.protocols.{method.name}", size
    stages = _cell_stages(package, (f"{method.name}.{key}", *drawing))
    return System(
        name=method.name,
        settings=settings,
        stages=(*COMMON_STAGES, *stages, _report_stage(package)),
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


def _cell_stages(package: str, params: tuple[str, ...]) -> tuple[Stage, Stage, Stage]:
    # No client has a part in the questions: every epsilon shares them.
    inputs = ("project",)
    train = server_stage(
        "train", f"{package}.train", inputs, QUESTIONS, axes=(), params=params
    )
    privatize = client_stage(
        "privatize", f"{package}.privatize", ANSWERS, ("project", "train")
    )
    aggregate_inputs = ("project", "train", "privatize")
    return (
        train,
        privatize,
        server_stage("aggregate", f"{package}.aggregate", aggregate_inputs, SCORECARD),
    )


def _production_stages(stages: tuple[Stage, Stage, Stage]) -> tuple[Stage, ...]:
    train, privatize, aggregate = stages
    inputs = ("ingest", "project", "train")
    release = release_stage(privatize, "report", inputs, ("project.judge",))
    return train, release, aggregate


def _report_stage(package: str) -> Stage:
    return score_stage(
        f"{package}.score",
        ("project", "aggregate"),
        params=("epsilon", *ROLE_PARAMS),
        beside=(by_class.CONFUSION,),
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
