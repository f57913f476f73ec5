"""System `direct_two`: a whitening round, then reports in its terms."""

from __future__ import annotations

from dataclasses import replace

from curvote.chain.measure import Look, Method
from curvote.chain.system import System
from curvote.protocols import checks, finals, outcomes
from curvote.protocols.auto import choosing
from curvote.protocols.direct.settings import Settings
from curvote.protocols.direct.system import (
    AGGREGATE,
    JUDGED_BY_Z,
    PRIVATIZE,
    RELEASE,
    SCORE,
    TERM_PARAMS,
)
from curvote.protocols.direct.tables import DIRECTIONS, WHITENING
from curvote.protocols.direct_two.messages import MESSAGES
from curvote.protocols.majority.messages import ComparisonLabel
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS
from curvote.protocols.stages.declared import (
    COMMON_STAGES,
    SECTIONS,
    client_stage,
    release_stage,
    server_stage,
)

_HERE = "curvote.protocols.direct_two"
_PRIVATIZE = replace(PRIVATIZE, module=f"{_HERE}.privatize")
_WHITEN = server_stage("whiten", f"{_HERE}.whiten", ("privatize",), WHITENING)
_REFINE = client_stage(
    "refine", f"{_HERE}.refine", DIRECTIONS, ("project", "whiten"), params=TERM_PARAMS
)
_RELEASE_SECOND = release_stage(
    _REFINE, "refinement", ("ingest", "privatize", "whiten")
)
_COMBINE = replace(
    AGGREGATE, module=f"{_HERE}.combine", inputs=("privatize", "whiten", "refine")
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
        choosing.check_choice,
        classes=checks.check_many_classes,
    ),
    resolve_parts=choosing.resolve_choice,
    implied_settings=JUDGED_BY_Z,
    final_model=finals.decoded_model,
    production_metrics=outcomes.count_reports,
    sections=SECTIONS,
)
