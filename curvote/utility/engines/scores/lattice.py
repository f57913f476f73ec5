"""Shares of two classes when many values are noised: convolution with a bracket.

The score's difference is a sum of independent terms. Each is rounded down to a lattice;
so the sum of k of them is at most k steps below the true one, and never above it.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from curvote.mechanisms.law import Law
from curvote.utility.engines.scores.quadrature import law_ends
from curvote.utility.engines.scores.winning import ValueLaw
from curvote.validate import FloatArray

# The width that brackets aim at, and the most steps of one term's lattice.
WIDTH = 1e-3
MOST_STEPS = 1 << 17
# Mass that may be lost at each end of each sum; it is within the bracket.
LOST_MASS = 1e-9

Term = tuple[int, FloatArray]


def bracket_positive(
    constant: FloatArray, slopes: FloatArray, laws: tuple[Law, ...]
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper P(constant + sum of slopes x values > 0), (n,).

    ``constant`` is (n,), ``slopes`` (k,) are those of all records, none is 0.
    """
    spans = [_term_span(law, slope) for law, slope in zip(laws, slopes, strict=True)]
    longest = max(high - low for low, high in spans)
    step = sum(high - low for low, high in spans) / 2**12
    while True:
        step = max(step, longest / MOST_STEPS)
        low, high = _bracket_at_step(constant, slopes, laws, spans, step)
        excess = float((high - low).max()) / WIDTH
        if excess <= 1 or step <= longest / MOST_STEPS:
            return low, high
        step /= max(1.25 * excess, 2)


def _term_span(law: Law, slope: float) -> tuple[float, float]:
    """Return the ends of slope x value for all records, up to lost mass."""
    low, high = law_ends(ValueLaw.with_atoms(law))
    ends = slope * low.min(), slope * high.max()
    return min(ends), max(ends)


def _bracket_at_step(
    constant: FloatArray,
    slopes: FloatArray,
    laws: tuple[Law, ...],
    spans: list[tuple[float, float]],
    step: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the bracket with a lattice of this step."""
    parts = zip(laws, slopes, spans, strict=True)
    start, mass = _sum_law([_round_down(*part, step) for part in parts])
    below = np.hstack([np.zeros((len(mass), 1)), np.cumsum(mass, axis=1)])
    # A sum at place L lies within [start + L, start + L + k], in steps.
    need = -constant / step - start
    certain = np.floor(need + 1e-9) + 1
    possible = np.floor(need - len(slopes) - 1e-9) + 1
    low, high = (1 - _value_at(below, place) for place in (certain, possible))
    lost = np.maximum(1 - below[:, -1], 0)
    return np.clip(low - lost, 0, 1), np.clip(high, 0, 1)


def _value_at(sums: FloatArray, place: FloatArray) -> FloatArray:
    """Return the cumulative mass at each place."""
    inside = np.clip(place, 0, sums.shape[1] - 1).astype(int)
    return np.asarray(np.take_along_axis(sums, inside[:, None], axis=1)[:, 0])


def _round_down(law: Law, slope: float, span: tuple[float, float], step: float) -> Term:
    """Return the law of slope x value rounded down: first place, and masses."""
    first, last = (int(np.floor(end / step)) for end in span)
    edges = np.arange(first, last + 2) * step / slope
    sums = law.below(edges) if slope > 0 else 1 - law.cdf(edges)
    return _trim(first, np.maximum(np.diff(sums), 0))


def _sum_law(terms: list[Term]) -> Term:
    """Return the law of the sum of all terms."""
    while len(terms) > 1:
        pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
        terms = [reduce(_convolve, pair) for pair in pairs]
    return terms[0]


def _convolve(first: Term, second: Term) -> Term:
    """Return the law of the sum of two terms."""
    from scipy.signal import fftconvolve

    mass = np.maximum(fftconvolve(first[1], second[1], axes=1), 0)
    return _trim(first[0] + second[0], mass)


def _trim(first: int, mass: FloatArray) -> Term:
    """Return a term without ends where no record has more than `LOST`."""
    from_start = (np.cumsum(mass, axis=1) > LOST_MASS).any(axis=0)
    from_end = (np.cumsum(mass[:, ::-1], axis=1) > LOST_MASS).any(axis=0)
    places = np.flatnonzero(from_start & np.flip(from_end))
    if not len(places):
        return first, mass
    return first + int(places[0]), mass[:, places[0] : places[-1] + 1]
