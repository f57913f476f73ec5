"""System `direct_two`: a whitening round, then reports in its terms."""

from __future__ import annotations

from dataclasses import replace

from curvote.chain.measure import Look, Method
from curvote.chain.system import System
from curvote.messages.measures import ERRORS, MAJORITY
from curvote.systems.common import checks, models
from curvote.systems.common.declarations import (
    COMMON_STAGES,
    SECTIONS,
    client_stage,
    release_stage,
    server_stage,
)
from curvote.systems.common.tables import DIRECTIONS, WHITENING
from curvote.systems.direct import choice
from curvote.systems.direct.system import (
    AGGREGATE,
    JUDGED_BY_Z,
    PRIVATIZE,
    RELEASE,
    SCORE,
    TERM_PARAMS,
    Settings,
)
from curvote.systems.direct.two.messages import MESSAGES
from curvote.systems.references.messages import ComparisonLabel

_PRIVATIZE = replace(PRIVATIZE, module="curvote.systems.direct.stages:privatize_first")
_WHITEN = server_stage(
    "whiten", "curvote.systems.direct.stages:whiten", ("privatize",), WHITENING
)
_REFINE = client_stage(
    "refine",
    "curvote.systems.direct.stages:refine",
    DIRECTIONS,
    ("project", "whiten"),
    params=TERM_PARAMS,
)
_RELEASE_SECOND = release_stage(
    _REFINE, "refinement", ("ingest", "privatize", "whiten")
)
_COMBINE = replace(
    AGGREGATE,
    module="curvote.systems.direct.stages:combine",
    inputs=("privatize", "whiten", "refine"),
)

_TWO = Method(
    "two",
    "direct, two rounds",
    "The first clients' reports centre and whiten what the others report.",
    Look("#d55e00", "8", width=2.6, size=6.5, above=6),
    rank=110,
)


SYSTEM = System(
    name="direct_two",
    settings=Settings,
    stages=(*COMMON_STAGES, _PRIVATIZE, _WHITEN, _REFINE, _COMBINE, SCORE),
    production=(*COMMON_STAGES, RELEASE, _WHITEN, _RELEASE_SECOND, _COMBINE),
    messages=MESSAGES,
    study_messages=(ComparisonLabel().describe,),
    metrics=ERRORS,
    methods=(_TWO, MAJORITY),
    main=("two",),
    checks=checks.combine_checks(
        checks.check_test_clients,
        choice.check_choice,
        classes=checks.check_many_classes,
    ),
    resolve_parts=choice.resolve_choice,
    implied_settings=JUDGED_BY_Z,
    final_model=models.decoded_model,
    production_metrics=models.count_reports,
    sections=SECTIONS,
)
