"""System `direct_one_of`: 1-of-K answers, then a mean for each class."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from curvote.chain.measure import Look, Method
from curvote.chain.stage import VECTOR, Table
from curvote.chain.system import System
from curvote.messages.measures import ERRORS, MAJORITY
from curvote.systems.common import checks, models
from curvote.systems.common.declarations import COMMON_STAGES, SECTIONS
from curvote.systems.direct import choice
from curvote.systems.direct.one_of.messages import ARM, MESSAGES
from curvote.systems.direct.system import (
    AGGREGATE,
    JUDGED_BY_Z,
    PRIVATIZE,
    RELEASE,
    SCORE,
    Settings,
)
from curvote.systems.references.messages import ComparisonLabel

NAMED_DIRECTIONS: Final = Table(
    "named_directions", {"named": "int64", "direction": VECTOR}, unit="message"
)


_PRIVATIZE = replace(
    PRIVATIZE,
    module="curvote.systems.direct.stages:privatize_one_of",
    tables=(NAMED_DIRECTIONS,),
)
_RELEASE = replace(RELEASE, tables=(NAMED_DIRECTIONS,))
_COMBINE = replace(AGGREGATE, module="curvote.systems.direct.stages:combine_one_of")

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
        choice.check_choice,
        classes=checks.check_many_classes,
    ),
    resolve_parts=choice.resolve_choice,
    implied_settings=JUDGED_BY_Z,
    final_model=models.decoded_model,
    production_metrics=models.count_reports,
    sections=SECTIONS,
)
