"""The truth about drawn answers, by a way of its own: the law on a fine grid."""

from __future__ import annotations

import numpy as np

from curvote.base.validate import FloatArray
from curvote.mechanisms.base import Law
from curvote.systems.utility.method.engines.base import (
    Channel,
    class_indices,
    predict_batched,
)
from curvote.systems.utility.method.engines.black_box import BlackBoxSurface


def grid_shares(known: BlackBoxSurface, channel: Channel, cells: int) -> FloatArray:
    """Return the agreement of each record, two sensitive features, by cells x cells.

    The edges of the bounds, where clipped noise is, are lines of their own; inside a
    cell the answer is that at its centre.
    """
    question = known.question
    lines = [np.linspace(*ends, cells + 1) for ends in question.bounds]
    centres = [np.r_[at[0], (at[1:] + at[:-1]) / 2, at[-1]] for at in lines]
    points = np.stack(np.meshgrid(*centres, indexing="ij"), axis=-1).reshape(-1, 2)
    law = channel.law(question.values)
    assert law is not None
    shares = np.zeros(len(known.clean))
    sides = [
        [_cells(part, at) for part, at in zip(term, lines, strict=True)]
        for term in law.terms
    ]
    for i, clean in enumerate(known.clean):
        rows = np.repeat(question.records[[i]], len(points), axis=0)
        rows[:, list(question.sensitive)] = points
        right = (
            class_indices(known.classes, predict_batched(question.model, rows)) == clean
        )
        for weight, (first, second) in zip(law.weights[i], sides, strict=True):
            masses = np.outer(first[i], second[i]).ravel()
            shares[i] += weight * masses[right].sum()
    return shares


def _cells(law: Law, lines: FloatArray) -> FloatArray:
    low = law.cdf(lines[:1])
    inner = np.diff(law.cdf(lines[:-1]), axis=1)
    last = law.below(lines[-1:]) - law.cdf(lines[-2:-1])
    high = 1 - law.below(lines[-1:])
    return np.hstack([low, inner, last, high])
