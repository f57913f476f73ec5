"""Studies of QCU: tables, records, models, the two classifiers, printed numbers."""

from __future__ import annotations

import numpy as np

from curvote.validate import FloatArray

_PLACES = {"first": 0, "second": 1}


def is_worst_case(setting: str) -> bool:
    """Return whether a setting is the worst of its records."""
    return setting.startswith("worst of ")


def record_group(setting: str) -> str:
    """Return the setting's name of its records alone: "first 100"."""
    some = setting.split(" of ")[1:]
    return f"first {some[0]}" if some else setting


def select_records(records: FloatArray, setting: str) -> FloatArray:
    """Return the records of a setting: "first", "second" or "first 100"."""
    if setting in _PLACES:
        return records[[_PLACES[setting]]]
    return records[: int(setting.removeprefix("first "))]


def summarize_shares(setting: str, shares: FloatArray) -> float:
    """Return the setting's summary of the shares: first, mean or minimum."""
    return float(np.min(shares) if is_worst_case(setting) else np.mean(shares))
