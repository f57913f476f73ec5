"""The public bounds of features, as a user states them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.errors import UserError

Array = NDArray[np.float64]


def ends(bounds: Any) -> tuple[ArrayLike, ArrayLike]:
    """Return (lower, upper) as they were given; anything but two: UserError."""
    try:
        lower, upper = bounds
    except (TypeError, ValueError):
        raise UserError(
            f"bounds is {validate.shown(bounds)}; give (lower, upper), each a number or"
            " one for each feature."
        ) from None
    return lower, upper


def between(bounds: Any) -> tuple[Array, Array]:
    """Return (lower, upper) as finite numbers that increase; else UserError."""
    lower, upper = (validate.finite(bounds=end) for end in ends(bounds))
    if not np.less(lower, upper).all():
        raise UserError(
            f"bounds is {validate.shown(bounds)}; each lower end must be below its"
            " upper one."
        )
    return lower, upper
