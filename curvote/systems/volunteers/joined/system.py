"""System `joined`: reports and public records in one classifier."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from curvote.chain.measure import Look, Method
from curvote.chain.stage import Table
from curvote.chain.system import System
from curvote.messages.measures import ERRORS
from curvote.systems.common import checks, models
from curvote.systems.common.declarations import COMMON_STAGES, SECTIONS
from curvote.systems.common.tables import CLASSIFIER
from curvote.systems.direct import system
from curvote.systems.direct.messages import MESSAGES
from curvote.systems.direct.system import (
    AGGREGATE,
    JUDGED_BY_Z,
    PRIVATIZE,
    RELEASE,
    SCORE,
    Settings,
)
from curvote.systems.direct.system import SYSTEM as DIRECT
from curvote.systems.references.messages import ComparisonLabel
from curvote.systems.volunteers.system import PUBLISH

REPORTS_ALONE: Final = Table("reports_alone", CLASSIFIER.columns, unit="classifier")


JOINED: Final = Method(
    "joined",
    "joined",
    "The reports of `direct` and the volunteers' public records with their labels, "
    "each weighted by the inverse of its variance.",
    Look("#cc79a7", "p", width=2.6, size=6.5, above=6),
    rank=142,
)


_AGGREGATE = replace(
    AGGREGATE,
    module="curvote.systems.volunteers.stages:join",
    inputs=("privatize", PUBLISH.name),
    tables=(*AGGREGATE.tables, REPORTS_ALONE),
)
_SCORE = replace(SCORE, module="curvote.systems.volunteers.stages:score_join")

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
        system.check_choice,
        classes=checks.check_many_classes,
    ),
    resolve_parts=system.resolve_choice,
    implied_settings=JUDGED_BY_Z,
    final_model=models.decoded_model,
    production_metrics=models.count_reports,
    sections=SECTIONS,
)
