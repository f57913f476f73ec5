"""System `auto`: a choice among other systems."""

from __future__ import annotations

from typing import Final

from curvote.chain.measure import Look, Method
from curvote.chain.system import System
from curvote.protocols import checks
from curvote.protocols.auto import choosing
from curvote.protocols.auto.settings import Settings
from curvote.protocols.direct.system import JUDGED_BY_Z
from curvote.protocols.measures import ERRORS

AUTO_METHOD: Final = Method(
    choosing.AUTO_PROTOCOL,
    "auto",
    "What the number of clients, the size and epsilon call for, as the notes say.",
    Look("#7a1fa2", "*", width=2.6, size=9, above=7),
    rank=5,
)

SYSTEM = System(
    name=choosing.AUTO_PROTOCOL,
    settings=Settings,
    stages=(),
    metrics=ERRORS,
    methods=(AUTO_METHOD,),
    checks=checks.combine_checks(
        checks.check_test_clients,
        choosing.check_choice,
        classes=checks.check_many_classes,
    ),
    resolve_parts=choosing.resolve_choice,
    implied_settings=JUDGED_BY_Z,
)
