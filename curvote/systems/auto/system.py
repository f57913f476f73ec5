"""System `auto`: settings of whichever system it chooses."""

from typing import Final

from curvote.chain.measure import Look, Method
from curvote.chain.system import System
from curvote.messages.measures import ERRORS
from curvote.systems.common import checks
from curvote.systems.direct import system
from curvote.systems.direct.system import JUDGED_BY_Z
from curvote.systems.direct.system import Settings as DirectSettings
from curvote.systems.mrma.system import Votes


class Settings(DirectSettings):
    """Settings of `direct` and of `votes` together."""

    votes: Votes = Votes()


AUTO_METHOD: Final = Method(
    system.AUTO_PROTOCOL,
    "auto",
    "What the number of clients, the size and epsilon call for, as the notes say.",
    Look("#7a1fa2", "*", width=2.6, size=9, above=7),
    rank=5,
)

SYSTEM = System(
    name=system.AUTO_PROTOCOL,
    settings=Settings,
    stages=(),
    metrics=ERRORS,
    methods=(AUTO_METHOD,),
    checks=checks.combine_checks(
        checks.check_test_clients,
        system.check_choice,
        classes=checks.check_many_classes,
    ),
    resolve_parts=system.resolve_choice,
    implied_settings=JUDGED_BY_Z,
)
