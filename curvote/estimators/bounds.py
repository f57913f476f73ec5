"""Base of the scikit-learn classes: bounds, labels, and a rule learnt by both sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.errors import UserError
from curvote.warned import warn_outside

Array = NDArray[np.float64]


def split_bounds(bounds: Any) -> tuple[ArrayLike, ArrayLike]:
    """Return (lower, upper) as they were given; anything but two: UserError."""
    try:
        lower, upper = bounds
    except (TypeError, ValueError):
        raise UserError(
            f"bounds is {validate.format_value(bounds)}; give (lower, upper), each a"
            " number or"
            " one for each feature."
        ) from None
    return lower, upper


def feature_bounds(bounds: Any, d: int) -> tuple[Array, Array]:
    """Return (lower, upper), each (d,) of finite numbers; else UserError."""
    lower, upper = (_end_by_feature(end, d) for end in split_bounds(bounds))
    return lower, upper


def increasing_bounds(bounds: Any, d: int) -> tuple[Array, Array]:
    """Return (lower, upper), each (d,), that increase; else UserError."""
    lower, upper = feature_bounds(bounds, d)
    if not np.less(lower, upper).all():
        raise UserError(
            f"bounds is {validate.format_value(bounds)}; each lower end must be below"
            " its"
            " upper one."
        )
    return lower, upper


def warn_clipped(
    values: Array, bounds: tuple[Array, Array], names: Sequence[Any], depth: int = 4
) -> None:
    """Warn the holder of ``values`` (n, d), ``depth`` calls up, of what bounds clip."""
    what = (
        "they count as lying on the bounds, so how they differ is lost. State"
        " bounds=(lower, upper), in the units of the data and known without it."
    )
    warn_outside(values, bounds, names, what, depth=depth)


def _end_by_feature(end: ArrayLike, d: int) -> Array:
    values = validate.finite(bounds=end)
    if values.shape not in {(), (d,)}:
        raise UserError(
            f"bounds has shape {values.shape}; give a number, or one for each of the"
            f" {d} features."
        )
    return np.broadcast_to(values, (d,))
