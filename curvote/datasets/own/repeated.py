"""Repeated rows of a long table, found by digests of 128 bits.

Rows need not be held: of each there are 16 bytes. Two different rows with one digest
would be taken for equal, by a chance of 2^-80 in a table of 10 million rows.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
# The increment and the finalizer's multipliers of SplitMix (Steele, Lea & Flood 2014).
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SEEDS: Final = (np.uint64(0x243F6A8885A308D3), np.uint64(0x13198A2E03707344))


class RepeatedRows:
    """Digests of all rows so far, to find repeated ones."""

    def __init__(self) -> None:
        self._parts: tuple[list[Words], list[Words]] = ([], [])

    def add(self, rows: NDArray[np.float64]) -> None:
        """Add rows (m, p); missing values (NaN) are equal, and 0 is -0."""
        words = np.where(np.isnan(rows), np.nan, rows + 0.0).view(np.uint64)
        for seed, parts in zip(_SEEDS, self._parts, strict=True):
            parts.append(_digest(words, seed))

    def first_occurrences(self) -> NDArray[np.bool_] | None:
        """Return a mask of rows that repeat no earlier one; None: all."""
        high, low = (_concatenate(parts) for parts in self._parts)
        order = np.argsort(high, kind="stable")
        ranked = high[order]
        same = np.flatnonzero(ranked[1:] == ranked[:-1])
        if not same.size:
            return None
        some = order[np.union1d(same, same + 1)]
        some = some[np.lexsort((some, low[some], high[some]))]
        again = (np.diff(high[some]) == 0) & (np.diff(low[some]) == 0)
        first_mask = np.ones(len(high), dtype=bool)
        first_mask[some[1:][again]] = False
        return None if first_mask.all() else first_mask


def _concatenate(parts: list[Words]) -> Words:
    digests = np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)
    parts.clear()
    return digests


def _digest(words: Words, seed: np.uint64) -> Words:
    state = np.full(len(words), seed, dtype=np.uint64)
    for column in words.T:
        state = _mix_bits((state ^ column) + _GOLDEN)
    return state


def _mix_bits(state: Words) -> Words:
    state = (state ^ (state >> np.uint64(30))) * _MIX[0]
    state = (state ^ (state >> np.uint64(27))) * _MIX[1]
    return np.asarray(state ^ (state >> np.uint64(31)))
