"""System `direct` in one round: reports, then their mean.

Arms ``mean`` and ``joint``; `direct_two` is the arm ``two``.
"""

from __future__ import annotations

from curvote.chain.measure import Look, Method
from curvote.chain.system import System
from curvote.protocols import checks, finals, outcomes
from curvote.protocols.auto import choosing
from curvote.protocols.by_class import CONFUSION
from curvote.protocols.direct.messages import MESSAGES
from curvote.protocols.direct.settings import Settings
from curvote.protocols.direct.tables import CLASSIFIER, DIRECTIONS
from curvote.protocols.majority.messages import ComparisonLabel
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS
from curvote.protocols.stages.declared import (
    COMMON_STAGES,
    EPSILON_AXES,
    ROLE_PARAMS,
    SECTIONS,
    client_stage,
    release_stage,
    score_stage,
    server_stage,
)

_HERE = "curvote.protocols.direct"
TERM_PARAMS = ("direct.arm", "direct.intercept")
JUDGED_BY_Z = {"project.judge": "rescaled"}  # it learns from z

PRIVATIZE = client_stage(
    "privatize", f"{_HERE}.privatize", DIRECTIONS, params=TERM_PARAMS
)
RELEASE = release_stage(
    PRIVATIZE, "report", ("ingest", "project"), (*TERM_PARAMS, "project.judge")
)
AGGREGATE = server_stage(
    "aggregate",
    f"{_HERE}.aggregate",
    ("privatize",),
    CLASSIFIER,
    params=("direct.gate",),
)
SCORE = score_stage(
    f"{_HERE}.score",
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
        choosing.check_choice,
        classes=checks.check_many_classes,
    ),
    resolve_parts=choosing.resolve_choice,
    shorthand=("arm", "intercept"),
    implied_settings=JUDGED_BY_Z,
    final_model=finals.decoded_model,
    production_metrics=outcomes.count_reports,
    sections=SECTIONS,
)
