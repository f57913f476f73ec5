"""Randomizers with a stated (epsilon, delta), one family a file, each with its law."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curvote.mechanisms.coordinates import per_coordinate
    from curvote.mechanisms.registry import make, names

__all__ = ["make", "names", "per_coordinate"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "per_coordinate":
        from curvote.mechanisms import coordinates

        return coordinates.per_coordinate
    from curvote.mechanisms import registry

    return getattr(registry, name)
