"""When votes that came later say that the classifiers became worse."""

from __future__ import annotations

from curvote.chain.axis import Settings
from curvote.chain.stage import Facts
from curvote.server.watch import fell


def alarm(settings: Settings, facts: Facts) -> bool:
    """Say whether a stage that collected votes found the newest ones worse.

    The level is that of ``online.drop`` standard errors.
    """
    level = facts.get("fall")
    return level is not None and fell(level, settings.online.drop)
