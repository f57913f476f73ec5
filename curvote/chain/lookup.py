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


def named(key: str) -> list[str]:
    """Return what may stand at a configuration key, by all systems' registries."""
    stages = (stage for one in systems() for stage in one.every_stage)
    registries = dict.fromkeys(p for s in stages for p, at in s.plugins if at == key)
    return list(dict.fromkeys(n for place in registries for n in _names(place)))


def _names(registry: str) -> list[str]:
    module, _, table = registry.partition(":")
    return list(getattr(import_module(module), table))
