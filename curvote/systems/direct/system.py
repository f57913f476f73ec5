"""System `direct` in one round: reports, then their mean."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from curvote.chain.measure import Look, Method
from curvote.chain.settings import Strict
from curvote.chain.system import System
from curvote.messages.measures import ERRORS, MAJORITY
from curvote.systems.common import checks, models
from curvote.systems.common.declarations import (
    COMMON_STAGES,
    EPSILON_AXES,
    ROLE_PARAMS,
    SECTIONS,
    client_stage,
    release_stage,
    score_stage,
    server_stage,
)
from curvote.systems.common.settings import Shared
from curvote.systems.common.study import CONFUSION
from curvote.systems.common.tables import CLASSIFIER, DIRECTIONS
from curvote.systems.direct import choice
from curvote.systems.direct.messages import MESSAGES
from curvote.systems.references.messages import ComparisonLabel


class Direct(Strict):
    """Arm of protocol ``direct``, and the constant beside z.

    ``auto`` takes the arm that N, d and epsilon call for; ``intercept`` is public.
    ``gate`` lets the server name the majority where the rule that it decoded gains
    nothing (`curvote.learning.fallback`); protocol `auto` always does.
    """

    arm: Literal["auto", "mean", "joint", "two", "one_of"] = "auto"
    intercept: Literal["auto"] | Annotated[float, Field(gt=0)] = "auto"
    gate: bool = False


class Volunteers(Strict):
    """Whether records of volunteers are joined with the reports."""

    labels: bool = False


class Settings(Shared):
    """Settings of noised directions; ``liars`` is the share that may lie."""

    direct: Direct = Direct()
    volunteers: Volunteers = Volunteers()
    liars: Annotated[float, Field(ge=0, lt=0.5)] = 0.0


TERM_PARAMS = ("direct.arm", "direct.intercept")
JUDGED_BY_Z = {"project.judge": "rescaled"}  # it learns from z

PRIVATIZE = client_stage(
    "privatize",
    "curvote.systems.direct.stages:privatize",
    DIRECTIONS,
    params=TERM_PARAMS,
)
RELEASE = release_stage(
    PRIVATIZE, "report", ("ingest", "project"), (*TERM_PARAMS, "project.judge")
)
AGGREGATE = server_stage(
    "aggregate",
    "curvote.systems.direct.stages:aggregate",
    ("privatize",),
    CLASSIFIER,
    params=("direct.gate",),
)
SCORE = score_stage(
    "curvote.systems.direct.stages:score",
    ("project", "aggregate"),
    EPSILON_AXES,
    ("epsilon", "direct.arm", *ROLE_PARAMS),
    beside=(CONFUSION,),
)

_MEAN = Method(
    "mean",
    "direct, mean",
    "Every client reports one noised direction, label times record; the mean of "
    "all is the classifier.",
    Look("#d55e00", "o", width=2.6, size=6.5, above=6),
    rank=90,
)
_JOINT = Method(
    "joint",
    "direct, joint",
    "The same, but a part of each report tells the second moment, which corrects "
    "the mean.",
    Look("#d55e00", "h", width=2.6, size=6.5, above=6),
    rank=100,
)


SYSTEM = System(
    name="direct",
    settings=Settings,
    stages=(*COMMON_STAGES, PRIVATIZE, AGGREGATE, SCORE),
    production=(*COMMON_STAGES, RELEASE, AGGREGATE),
    messages=MESSAGES,
    study_messages=(ComparisonLabel().describe,),
    metrics=ERRORS,
    methods=(_MEAN, _JOINT, MAJORITY),
    main=("mean", "joint"),
    checks=checks.combine_checks(
        checks.check_test_clients,
        choice.check_choice,
        classes=checks.check_many_classes,
    ),
    resolve_parts=choice.resolve_choice,
    shorthand=("arm", "intercept"),
    implied_settings=JUDGED_BY_Z,
    final_model=models.decoded_model,
    production_metrics=models.count_reports,
    sections=SECTIONS,
)
