"""Model reversal: a classifier worse than chance with its sign changed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.errors import UserError
from curvote.server.utility import check_vote_counts


def reversal_mask(positive: ArrayLike, n: ArrayLike) -> NDArray[np.bool_]:
    """Return which classifiers to reverse, [B]: those with 2 * positive < n.

    This is MRMA, equation (9), "estimated accuracy < 1/2", asked of the integer counts
    ``positive`` [B] of ``n`` [B]: in floating point a tie falls to either side by
    rounding error. A tie keeps the classifier.
    """
    votes, total = check_vote_counts(positive, n)
    return 2 * votes < total


def reversed_utility(utility: ArrayLike, reversed_: ArrayLike) -> NDArray[np.float64]:
    """Return the utilities [B] after reversal.

    The standard errors stay as they are.
    """
    value, mask = validate.finite(utility=utility), np.asarray(reversed_, dtype=bool)
    if value.shape != mask.shape:
        raise UserError(f"utility has shape {value.shape}, reversed {mask.shape}.")
    return np.where(mask, 1 - value, value)
