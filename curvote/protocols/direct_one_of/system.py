"""System `direct_one_of`: 1-of-K answers, then a mean for each class.

The arm ``one_of``.
"""

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
)
from curvote.protocols.direct_one_of.messages import ARM, MESSAGES
from curvote.protocols.direct_one_of.tables import NAMED_DIRECTIONS
from curvote.protocols.majority.messages import ComparisonLabel
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS
from curvote.protocols.stages.declared import COMMON_STAGES, SECTIONS

_HERE = "curvote.protocols.direct_one_of"
_PRIVATIZE = replace(PRIVATIZE, module=f"{_HERE}.privatize", tables=(NAMED_DIRECTIONS,))
_RELEASE = replace(RELEASE, tables=(NAMED_DIRECTIONS,))
_COMBINE = replace(AGGREGATE, module=f"{_HERE}.combine")

_ONE_OF = Method(
    ARM,
    "direct, 1 of K",
    "Every client names one of the classes and a direction, both noised together; "
    "their mean for each class is the classifier.",
    Look("#d55e00", "p", width=2.6, size=6.5, above=6),
    rank=112,
)


SYSTEM = System(
    name="direct_one_of",
    settings=Settings,
    stages=(*COMMON_STAGES, _PRIVATIZE, _COMBINE, SCORE),
    production=(*COMMON_STAGES, _RELEASE, _COMBINE),
    messages=MESSAGES,
    study_messages=(ComparisonLabel().describe,),
    metrics=ERRORS,
    methods=(_ONE_OF, MAJORITY),
    main=(ARM,),
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
