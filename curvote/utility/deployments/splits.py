"""How a total epsilon is split over the sensitive features."""

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
_LOOKED_AT, _PUT = 400, 8


def splits(setting: Setting) -> list[Split]:
    """Return the shares that are tried, the equal ones first; 0 is withheld.

    One feature takes all. Two: a grid of quarters. More: equal, each of up to eight
    alone and, with public records, in proportion to `influence`, over all and over the
    upper half.
    """
    s = len(setting.sensitive)
    equal = (1 / s,) * s
    if s <= 2:
        return _unique([equal, *_grid(s)])
    alone = [tuple(map(float, row)) for row in np.eye(s)] if s <= MOST_ALONE else []
    return _unique([equal, *alone, *_led(setting)])


def _grid(s: int) -> list[Split]:
    steps = product(range(QUARTERS + 1), repeat=s)
    return [tuple(k / QUARTERS for k in row) for row in steps if sum(row) == QUARTERS]


def _unique(found: list[Split]) -> list[Split]:
    return list(dict.fromkeys(found))


def _led(setting: Setting) -> list[Split]:
    if setting.public is None:
        return []
    weight = influence(setting, setting.public)
    upper = weight * (weight >= np.median(weight))
    return [tuple((each / each.sum()).tolist()) for each in (weight, upper)]


def influence(setting: Setting, public: FloatArray) -> FloatArray:
    """Return for each sensitive feature how often it alone moves an answer, (s,).

    Over public records with the values of others in place; all equal where none moves.
    """
    records = public[:_LOOKED_AT]
    clean = setting.answers(records)
    moved = [_moved(setting, records, clean, column) for column in setting.sensitive]
    return np.array(moved) if max(moved) > 0 else np.ones(len(moved))


def _moved(setting: Setting, records: FloatArray, clean: Places, column: int) -> float:
    shifts = np.linspace(1, len(records), _PUT, endpoint=False).astype(int)
    found = []
    for shift in shifts:
        other = records.copy()
        other[:, column] = np.roll(records[:, column], shift)
        found.append(np.mean(setting.answers(other) != clean))
    return float(np.mean(found))
