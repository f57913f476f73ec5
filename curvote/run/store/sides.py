"""On which side of the trust boundary each stage's tables stand."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module

from curvote.errors import InternalError
from curvote.protocols.registry import PROTOCOLS
from curvote.protocols.stage import Stage
from curvote.run.plan.expand import INGEST, PROJECT

UNKNOWN = "client"  # a stage that no protocol has any more: closed rather than open


def side_of(stage: str) -> str:
    """Return the declared side of a stage, by its name."""
    return _sides().get(stage, UNKNOWN)


@cache
def _sides() -> dict[str, str]:
    found: dict[str, str] = {}
    for stage in _stages():
        if found.setdefault(stage.name, stage.side) != stage.side:
            raise InternalError(f"stage {stage.name} stands on two sides")
    return found


def _stages() -> Iterator[Stage]:
    yield from (INGEST, PROJECT)
    for place in PROTOCOLS.values():
        protocol = import_module(place)
        yield from (*protocol.STAGES, *protocol.PRODUCTION)
