"""`auto` as data: whatever it is asked, others do."""

from __future__ import annotations

from curvote.chain.system import System
from curvote.protocols import checks
from curvote.protocols.auto import choosing
from curvote.protocols.auto.settings import Settings
from curvote.protocols.direct.system import FIXED
from curvote.protocols.measures import ERRORS

SYSTEM = System(
    name="auto",
    settings=Settings,
    stages=(),
    metrics=ERRORS,
    checks=checks.every(checks.tested, choosing.checks, classes=checks.many),
    parts=choosing.parts,
    fixed=FIXED,
)
