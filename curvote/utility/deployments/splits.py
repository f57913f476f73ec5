"""Splits of a total epsilon over the sensitive features."""

from __future__ import annotations

from itertools import product

import numpy as np

from curvote.utility.setting import Places, Setting
from curvote.validate import FloatArray

Split = tuple[float, ...]
# The steps of a grid over two features.
QUARTERS = 4
# One of more features than these says next to nothing alone.
MOST_ALONE = 8
# Public records, and values of others put in their place, to see what moves answers.
_PUBLIC_SAMPLE, _SHIFTS = 400, 8


def candidate_splits(setting: Setting) -> list[Split]:
    """Return the candidate splits, the equal one first; 0 is withheld.

    One feature takes all. Two: a grid of quarters. More: equal, each of up to eight
    alone and, with public records, in proportion to `influence`, over all and over the
    upper half.
    """
    s = len(setting.sensitive)
    equal = (1 / s,) * s
    if s <= 2:
        return _drop_repeated([equal, *_quarter_splits(s)])
    alone = [tuple(map(float, row)) for row in np.eye(s)] if s <= MOST_ALONE else []
    return _drop_repeated([equal, *alone, *_influence_splits(setting)])


def _quarter_splits(s: int) -> list[Split]:
    """Return the splits in quarters over ``s`` features."""
    steps = product(range(QUARTERS + 1), repeat=s)
    return [tuple(k / QUARTERS for k in row) for row in steps if sum(row) == QUARTERS]


def _drop_repeated(candidates: list[Split]) -> list[Split]:
    """Return the splits without repetitions, in order."""
    return list(dict.fromkeys(candidates))


def _influence_splits(setting: Setting) -> list[Split]:
    """Return splits in proportion to `influence`, with public records."""
    if setting.public is None:
        return []
    weight = influence(setting, setting.public)
    upper = weight * (weight >= np.median(weight))
    return [tuple((weights / weights.sum()).tolist()) for weights in (weight, upper)]


def influence(setting: Setting, public: FloatArray) -> FloatArray:
    """Return for each sensitive feature how often it alone moves an answer, (s,).

    Over public records with the values of others in place; all equal where none moves.
    """
    records = public[:_PUBLIC_SAMPLE]
    clean = setting.answers(records)
    moved = [
        _moved_share(setting, records, clean, column) for column in setting.sensitive
    ]
    return np.array(moved) if max(moved) > 0 else np.ones(len(moved))


def _moved_share(
    setting: Setting, records: FloatArray, clean: Places, column: int
) -> float:
    """Return the share of answers that one column's values move."""
    shifts = np.linspace(1, len(records), _SHIFTS, endpoint=False).astype(int)
    shares = []
    for shift in shifts:
        shifted = records.copy()
        shifted[:, column] = np.roll(records[:, column], shift)
        shares.append(np.mean(setting.answers(shifted) != clean))
    return float(np.mean(shares))
