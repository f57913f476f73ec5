"""Whether one class wins in a whole box: the least lead of its score there."""

from __future__ import annotations

from itertools import product as every

import numpy as np
from numpy.typing import NDArray

from curvote.utility.engines.scores.forms import Scores
from curvote.validate import FloatArray


def keeps(
    scores: Scores, clean: NDArray[np.int64], low: FloatArray, high: FloatArray
) -> NDArray[np.bool_]:
    """Say for each record whether class ``clean`` (n,) wins in all of its closed box.

    The box is ``low`` to ``high``, (n, s). A tie is won by the first class.
    """
    free = scores.active()
    scores = scores.held(np.zeros_like(low), free)
    low, high = low[:, free], high[:, free]
    kept = np.ones(len(clean), dtype=bool)
    for mine, other in every(range(scores.classes), repeat=2):
        if mine != other:
            lead = least(scores, mine, other, low, high)
            won = lead >= 0 if mine < other else lead > 0
            kept &= won | (clean != mine)
    return kept


def least(
    scores: Scores, mine: int, other: int, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the least of score ``mine`` - score ``other`` in each box, (n,).

    Exact for straight lines, for sums of one-value terms, and for two values; else
    nothing is above it.
    """
    constant, linear, square = (
        part[..., mine] - part[..., other]
        for part in (scores.constant, scores.linear, scores.square)
    )
    linear = np.broadcast_to(linear, low.shape)
    if not (square - np.diag(np.diag(square))).any():
        return np.asarray(constant + _separate(linear, np.diag(square), low, high))
    return np.asarray(constant + _pair(linear, square, low, high))


def _separate(
    linear: FloatArray, square: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the least of sum of linear v + square v^2: each value by itself."""
    with np.errstate(divide="ignore", invalid="ignore"):
        bottom = np.where(square > 0, np.clip(-linear / (2 * square), low, high), low)
    found = [(linear + square * v) * v for v in (low, high, bottom)]
    return np.asarray(np.min(found, axis=0).sum(axis=1))


def _pair(
    linear: FloatArray, square: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the least of a quadratic of two values: on an edge, or at the bottom."""
    edges = []
    for place, end in every((0, 1), (low, high)):
        v, rest = end[:, place], 1 - place
        along = linear[:, [rest]] + 2 * square[0, 1] * v[:, None]
        own = (linear[:, place] + square[place, place] * v) * v
        box = low[:, [rest]], high[:, [rest]]
        edges.append(own + _separate(along, square[[rest], [rest]], *box))
    bottom = _bottom(linear, square, low, high)
    return np.asarray(np.min([*edges, bottom], axis=0))


def _bottom(
    linear: FloatArray, square: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the value at the point where the slope is 0, infinite outside the box."""
    if np.linalg.det(square) <= 0:
        return np.full(len(linear), np.inf)
    at = np.linalg.solve(2 * square, -linear.T).T
    inside = ((at >= low) & (at <= high)).all(axis=1)
    return np.where(inside, np.einsum("ns,ns->n", linear, at) / 2, np.inf)
