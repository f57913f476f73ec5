"""What the paper calls its records: one, or the average or the worst of the first."""

from __future__ import annotations

import numpy as np

from curvote.validate import FloatArray

_PLACES = {"first": 0, "second": 1}


def worst(setting: str) -> bool:
    """Say whether a setting speaks of the worst of its records."""
    return setting.startswith("worst of ")


def of(setting: str) -> str:
    """Return what names the records alone: "first 100" of an average and of a worst."""
    some = setting.split(" of ")[1:]
    return f"first {some[0]}" if some else setting


def chosen(records: FloatArray, setting: str) -> FloatArray:
    """Return the records that ``of`` names: "first", "second" or "first 100"."""
    if setting in _PLACES:
        return records[[_PLACES[setting]]]
    return records[: int(setting.removeprefix("first "))]


def taken(setting: str, shares: FloatArray) -> float:
    """Return what stands for the shares of all its records."""
    return float(np.min(shares) if worst(setting) else np.mean(shares))
