"""On which side of the trust boundary each stage's tables stand."""

from __future__ import annotations

from functools import cache

from curvote.chain.lookup import systems
from curvote.errors import InternalError

UNKNOWN = "client"  # a stage that no system has any more: closed rather than open


def side_of(stage: str) -> str:
    """Return the declared side of a stage, by its name."""
    return _sides().get(stage, UNKNOWN)


@cache
def _sides() -> dict[str, str]:
    found: dict[str, str] = {}
    for stage in (stage for one in systems() for stage in one.every_stage):
        if found.setdefault(stage.name, stage.side) != stage.side:
            raise InternalError(f"stage {stage.name} stands on two sides")
    return found
