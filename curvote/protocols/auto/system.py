"""`auto` as data: whatever it is asked, others do."""

from __future__ import annotations

from typing import Final

from curvote.chain.measure import Look, Method
from curvote.chain.system import System
from curvote.protocols import checks
from curvote.protocols.auto import choosing
from curvote.protocols.auto.settings import Settings
from curvote.protocols.direct.system import FIXED
from curvote.protocols.measures import ERRORS

RULE: Final = Method(
    choosing.AUTO,
    "auto",
    "What the number of clients, the size and epsilon call for, as the notes say.",
    Look("#7a1fa2", "*", width=2.6, size=9, above=7),
    rank=5,
)

SYSTEM = System(
    name=choosing.AUTO,
    settings=Settings,
    stages=(),
    metrics=ERRORS,
    methods=(RULE,),
    checks=checks.every(checks.tested, choosing.checks, classes=checks.many),
    parts=choosing.parts,
    fixed=FIXED,
)
