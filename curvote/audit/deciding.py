"""The words at which samplers decide: integers that a mechanism compares words with."""

from __future__ import annotations

from typing import Any


def thresholds(made: Any) -> tuple[int, ...]:
    """Return the integers that words are compared with, of all parts."""
    found: list[int] = []
    parts = ("window", "scalar", "part", "piecewise", "duchi", "label", "features")
    for name in ("threshold", "own_threshold", "other_threshold"):
        value = getattr(made, name, None)
        found += [value] if isinstance(value, int) else []
    for name in parts:
        if hasattr(made, name):
            found += thresholds(getattr(made, name))
    return tuple(sorted(set(found)))
