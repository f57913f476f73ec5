"""Store of immutable artifacts: sides, manifests, commits and migrations."""

from __future__ import annotations

from functools import cache

from curvote.chain.lookup import all_systems
from curvote.errors import InternalError

UNKNOWN_SIDE = "client"  # a stage that no system has any more: closed rather than open


def stage_side(stage: str) -> str:
    """Return the declared side of a stage, by its name."""
    return _declared_sides().get(stage, UNKNOWN_SIDE)


@cache
def _declared_sides() -> dict[str, str]:
    sides: dict[str, str] = {}
    for stage in (stage for member in all_systems() for stage in member.all_stages):
        if sides.setdefault(stage.name, stage.side) != stage.side:
            raise InternalError(f"stage {stage.name} stands on two sides")
    return sides
