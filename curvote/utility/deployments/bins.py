"""Public bins on a noised number's line, fine where the noise is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from curvote.mechanisms.law import Law
from curvote.validate import FloatArray

# A bin is so many times narrower than the middle half of the noise.
FINENESS = 12
FEWEST, MOST = 16, 512
# What lies beyond this share of the mass, on either side, is one bin.
TAIL = 1e-3
_STEPS = 40
# Less mass than this is no rest, but rounding.
_NOTHING = 1e-9


def bin_edges(laws: Sequence[Law], number: int | None = None) -> FloatArray:
    """Return the bins' inner ends, (b - 1,), increasing, for laws of public inputs.

    Bin k is (end k-1, end k]. ``laws`` are those of one number in each term of a
    mixture. Atoms have bins of their own; the rest is cut evenly into ``number`` bins
    (`count_bins` where not given) between its outermost quantiles.
    """
    points = np.unique(np.concatenate([law.points[law.masses > 0] for law in laws]))
    smooth = _continuous_laws(laws)
    if not smooth:
        return np.asarray(points[:-1])
    atoms = np.concatenate([points, np.nextafter(points, -inf)])
    low, high = _central_range(smooth)
    count = count_bins(laws) if number is None else number
    return np.unique(np.concatenate([atoms, np.linspace(low, high, count - 1)]))


def count_bins(laws: Sequence[Law]) -> int:
    """Return the number of bins of the continuous part: `FINENESS` in its half.

    At least ``FEWEST`` and at most ``MOST``; 1 where there are atoms only.
    """
    smooth = _continuous_laws(laws)
    if not smooth:
        return 1
    low, high = _central_range(smooth)
    halves = [_quantile(law, 0.75) - _quantile(law, 0.25) for law in smooth]
    narrowest = min(float(np.median(half)) for half in halves)
    width = max(narrowest / FINENESS, (high - low) / MOST)
    return int(np.clip(np.ceil((high - low) / width), FEWEST, MOST))


def _continuous_laws(laws: Sequence[Law]) -> list[Law]:
    """Return the laws that have a part without atoms."""
    return [law for law in laws if law.masses.sum(axis=1).min() < 1 - _NOTHING]


def _central_range(laws: Sequence[Law]) -> tuple[float, float]:
    """Return the outermost quantiles of some laws."""
    low = min(float(_quantile(law, TAIL).min()) for law in laws)
    high = max(float(_quantile(law, 1 - TAIL).max()) for law in laws)
    return low, high


def _quantile(law: Law, share: float) -> FloatArray:
    """Return the quantile of each input, (n,), by bisection."""
    low, high = _outer_bounds(law)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        under = law.cdf(middle[:, None])[:, 0] < share
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    return high


def _outer_bounds(law: Law) -> tuple[FloatArray, FloatArray]:
    """Return points below and above which there is next to no mass, (n,) each."""
    reach = 1.0
    while law.cdf([reach]).min() < 1 - TAIL / 2 or law.cdf([-reach]).max() > TAIL / 2:
        reach *= 2
    return np.full(law.n, -reach), np.full(law.n, reach)


def bin_masses(law: Law, ends: FloatArray) -> FloatArray:
    """Return P(each bin), (n, b), for the bins between ``ends`` (b - 1,)."""
    full = np.zeros((law.n, len(ends) + 2))
    full[:, 1:-1], full[:, -1] = law.cdf(ends), 1.0
    return np.maximum(np.diff(full, axis=1), 0.0)
