"""Boxes around records in which the answer certainly stays (Zheng & Hu, section 5.1).

First the radius, then each side on its own as far as the answer stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.utility.engines.base import Surface
from curvote.validate import FloatArray

# Of the bounds' widths: sides, and the radius, are at most so much short.
SIDE_PRECISION = 2.0**-12
RADIUS_PRECISION = 2.0**-16

Mask = NDArray[np.bool_]
# Whether the boxes ``low`` (n, s) to ``high`` hold; anything where it is not asked.
HoldsTest = Callable[[FloatArray, FloatArray, Mask], Mask]


@dataclass(frozen=True)
class Box:
    """Closed box for each of n records, in the model's units, within the bounds.

    ``bisect_radius`` (n,) is a share of the bounds' widths, the same in every
    direction; 1 holds everything. ``low`` and ``high`` (n, s) are the hyperrectangle,
    the record itself where nothing holds. ``certified`` (n,): the answer certainly is
    the clean one everywhere inside. ``queries`` (n,) counts the answers asked for.
    """

    radius: FloatArray
    low: FloatArray
    high: FloatArray
    certified: Mask
    queries: NDArray[np.int64]


def certify_box(
    surface: Surface,
    values: FloatArray,
    *,
    bounds: FloatArray,
    precision: float = SIDE_PRECISION,
) -> Box:
    """Return the boxes around ``values`` (n, s) in which answers certainly stay.

    ``bounds`` (s, 2). Only boxes for which ``surface.holds`` are kept, so a surface
    that cannot tell costs size and never certainty. NotImplementedError from a surface
    that cannot certify anything is passed on (``box_by_trials`` is for those).
    """
    inner = np.clip(values, *bounds.T)
    point = surface.holds(inner, inner)

    def holds_inside(low: FloatArray, high: FloatArray, which: Mask) -> Mask:
        # What is not asked costs least as a point.
        tested = (which & point)[:, None]
        ends = np.where(tested, low, inner), np.where(tested, high, inner)
        return point & surface.holds(*ends)

    first = bisect_radius(holds_inside, inner, bounds, RADIUS_PRECISION)
    ends = grow_boxes(holds_inside, ball_boxes(inner, first, bounds), bounds, precision)
    reach = inscribed_radius(ends, inner, bounds)
    none = np.zeros(len(values), dtype=np.int64)
    return Box(reach, ends[..., 0], ends[..., 1], point, none)


def inscribed_radius(
    ends: FloatArray, values: FloatArray, bounds: FloatArray
) -> FloatArray:
    """Return the radius of the largest ball within boxes, as a share.

    A side at the bounds stands in no way.
    """
    reach = np.abs(ends - values[..., None]) / np.diff(bounds)
    return np.asarray(np.where(ends == bounds, 1.0, reach).min(axis=(1, 2)))


def grow_boxes(
    holds: HoldsTest,
    balls: FloatArray,
    bounds: FloatArray,
    precision: float,
    first_step: float = 0.25,
) -> FloatArray:
    """Return boxes (n, s, 2) that ``holds`` accepts, grown from ``balls``.

    Each side in turn takes steps of ``first_step`` widths until none of a box's sides
    can. Then the step is halved, down to the precision, and each side takes one at
    most: two would have been a step before. With a first step of 0 the balls stay.
    """
    ends = balls.copy()
    step = np.full(len(balls), first_step)
    open_ = np.ones(ends.shape, dtype=bool)
    while (step >= precision).any():
        first = step == first_step
        for side in np.ndindex(ends.shape[1:]):
            at = (slice(None), *side)
            open_[at] &= _push_side(holds, ends, side, step * open_[at], bounds) & first
        done = ~open_.any(axis=(1, 2))
        open_[done] = True
        step = np.where(done, step / 2, step)
        step[step < precision] = 0
    return ends


def ball_boxes(
    values: FloatArray, radius: FloatArray, bounds: FloatArray
) -> FloatArray:
    """Return the balls of these radii within the bounds, (n, s, 2)."""
    low, high = bounds.T
    reach = radius[:, None] * (high - low)
    ends = np.maximum(values - reach, low), np.minimum(values + reach, high)
    return np.stack(ends, axis=-1)


def bisect_radius(
    holds: HoldsTest, values: FloatArray, bounds: FloatArray, precision: float
) -> FloatArray:
    """Return the largest accepted radius of each record, (n,), by bisection."""
    accepted, refused = np.zeros(len(values)), np.ones(len(values))
    every = np.ones(len(values), dtype=bool)
    for _ in range(math.ceil(-math.log2(precision))):
        middle = (accepted + refused) / 2
        ends = ball_boxes(values, middle, bounds)
        holding = holds(ends[..., 0], ends[..., 1], every)
        accepted, refused = (
            np.where(holding, middle, accepted),
            np.where(holding, refused, middle),
        )
    return accepted


def _push_side(
    holds: HoldsTest,
    ends: FloatArray,
    side: tuple[int, ...],
    step: FloatArray,
    bounds: FloatArray,
) -> Mask:
    """Move one side of each box by its step where it then holds; return where."""
    i, end = side
    width = bounds[i, 1] - bounds[i, 0]
    moved_end = np.clip(ends[:, i, end] + (2 * end - 1) * step * width, *bounds[i])
    wanted: Mask = moved_end != ends[:, i, end]
    if not wanted.any():
        return wanted
    tried = ends.copy()
    tried[:, i, end] = moved_end
    accepted = wanted & holds(tried[..., 0], tried[..., 1], wanted)
    ends[accepted, i, end] = moved_end[accepted]
    return accepted
