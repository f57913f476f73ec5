"""What the paper calls its records: one, or the average or the worst of the first."""

from __future__ import annotations

import numpy as np

from curvote.validate import FloatArray

_PLACES = {"first": 0, "second": 1}


def worst(setting: str) -> bool:
    """Say whether a setting speaks of the worst of its records."""
    return setting.startswith("worst of ")


def chosen(records: FloatArray, setting: str) -> FloatArray:
    """Return the records of "first", "second", "average of 100", "worst of 100"."""
    if setting in _PLACES:
        return records[[_PLACES[setting]]]
    return records[: int(setting.split(" of ")[1])]


def taken(setting: str, shares: FloatArray) -> float:
    """Return what stands for the shares of all its records."""
    return float(np.min(shares) if worst(setting) else np.mean(shares))
