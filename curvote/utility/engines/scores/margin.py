"""Certain wins of a class in a box: the least lead of its score there."""

from __future__ import annotations

from itertools import product as every

import numpy as np
from numpy.typing import NDArray

from curvote.utility.engines.scores.forms import Scores
from curvote.validate import FloatArray


def class_wins(
    scores: Scores, clean: NDArray[np.int64], low: FloatArray, high: FloatArray
) -> NDArray[np.bool_]:
    """Return for each record whether class ``clean`` (n,) wins in its whole box.

    The box is ``low`` to ``high``, (n, s). A tie is won by the first class.
    """
    free = scores.active_values()
    scores = scores.fix_values(np.zeros_like(low), free)
    low, high = low[:, free], high[:, free]
    wins = np.ones(len(clean), dtype=bool)
    for first, second in every(range(scores.classes), repeat=2):
        if first != second:
            lead = least_lead(scores, first, second, low, high)
            won = lead >= 0 if first < second else lead > 0
            wins &= won | (clean != first)
    return wins


def least_lead(
    scores: Scores, first: int, second: int, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the least lead of one class over another in each box, (n,).

    Exact for straight lines, for sums of one-value terms, and for two values; else
    nothing is above it.
    """
    constant, linear, square = (
        part[..., first] - part[..., second]
        for part in (scores.constant, scores.linear, scores.square)
    )
    linear = np.broadcast_to(linear, low.shape)
    if not (square - np.diag(np.diag(square))).any():
        return np.asarray(
            constant + _least_separable(linear, np.diag(square), low, high)
        )
    return np.asarray(constant + _least_of_two(linear, square, low, high))


def _least_separable(
    linear: FloatArray, square: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the least of sum of linear v + square v^2, value by value."""
    with np.errstate(divide="ignore", invalid="ignore"):
        bottom = np.where(square > 0, np.clip(-linear / (2 * square), low, high), low)
    values = [(linear + square * v) * v for v in (low, high, bottom)]
    return np.asarray(np.min(values, axis=0).sum(axis=1))


def _least_of_two(
    linear: FloatArray, square: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the least of a quadratic of two values in a box."""
    edges = []
    for place, end in every((0, 1), (low, high)):
        v, free = end[:, place], 1 - place
        along = linear[:, [free]] + 2 * square[0, 1] * v[:, None]
        edge_part = (linear[:, place] + square[place, place] * v) * v
        box = low[:, [free]], high[:, [free]]
        edges.append(edge_part + _least_separable(along, square[[free], [free]], *box))
    bottom = _stationary_value(linear, square, low, high)
    return np.asarray(np.min([*edges, bottom], axis=0))


def _stationary_value(
    linear: FloatArray, square: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the value at the stationary point, infinite outside the box."""
    if np.linalg.det(square) <= 0:
        return np.full(len(linear), np.inf)
    at = np.linalg.solve(2 * square, -linear.T).T
    inside = ((at >= low) & (at <= high)).all(axis=1)
    return np.where(inside, np.einsum("ns,ns->n", linear, at) / 2, np.inf)
