"""The systems behind their names."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from curvote import validate
from curvote.chain.registry import SYSTEMS
from curvote.chain.system import System


@cache
def system(name: str) -> System:
    """Return the system of this name; an unknown one is a UserError."""
    package = SYSTEMS[validate.one_of(SYSTEMS, protocol=name)]
    found: System = import_module(f"{package}.system").SYSTEM
    return found


def systems() -> tuple[System, ...]:
    """Return every system, in the order of the registry."""
    return tuple(system(name) for name in SYSTEMS)
