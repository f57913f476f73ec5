"""System `joined`: reports and public records in one classifier."""

from __future__ import annotations

from dataclasses import replace

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
)
from curvote.protocols.direct.system import SYSTEM as DIRECT
from curvote.protocols.joined.messages import MESSAGES
from curvote.protocols.joined.methods import JOINED
from curvote.protocols.joined.tables import REPORTS_ALONE
from curvote.protocols.majority.messages import ComparisonLabel
from curvote.protocols.measures import ERRORS
from curvote.protocols.stages.declared import COMMON_STAGES, SECTIONS
from curvote.protocols.volunteers.system import PUBLISH

_HERE = "curvote.protocols.joined"
_AGGREGATE = replace(
    AGGREGATE,
    module=f"{_HERE}.aggregate",
    inputs=("privatize", PUBLISH.name),
    tables=(*AGGREGATE.tables, REPORTS_ALONE),
)
_SCORE = replace(SCORE, module=f"{_HERE}.score")

SYSTEM = System(
    name="joined",
    settings=Settings,
    stages=(*COMMON_STAGES, PRIVATIZE, PUBLISH, _AGGREGATE, _SCORE),
    production=(*COMMON_STAGES, RELEASE, PUBLISH, _AGGREGATE),
    messages=MESSAGES,
    study_messages=(ComparisonLabel().describe,),
    metrics=ERRORS,
    methods=(JOINED, *DIRECT.methods),
    main=("joined",),
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
