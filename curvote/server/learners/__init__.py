"""Learners of linear classifiers, each fitted to a whole batch of problems at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curvote.server.learners.registry import fit, names, parameters

__all__ = ["fit", "names", "parameters"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from curvote.server.learners import registry

        return getattr(registry, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
