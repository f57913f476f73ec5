"""Systems by name, loaded when they are asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from curvote import validate
from curvote.chain.registry import SYSTEMS
from curvote.chain.system import System


@cache
def find_system(name: str) -> System:
    """Return the system of this name; an unknown one is a UserError."""
    package = SYSTEMS[validate.one_of(SYSTEMS, protocol=name)]
    result: System = import_module(f"{package}.system").SYSTEM
    return result


def all_systems() -> tuple[System, ...]:
    """Return all systems, in the order of the registry."""
    return tuple(find_system(name) for name in SYSTEMS)


def names_at_key(key: str) -> list[str]:
    """Return the names that registries allow at a configuration key."""
    stages = (stage for entry in all_systems() for stage in entry.all_stages)
    registries = dict.fromkeys(p for s in stages for p, at in s.plugins if at == key)
    return list(
        dict.fromkeys(n for place in registries for n in _registry_names(place))
    )


def _registry_names(registry: str) -> list[str]:
    module, _, table = registry.partition(":")
    return list(getattr(import_module(module), table))
