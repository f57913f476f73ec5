"""Drift alerts: tests whether the newest voters find the candidates worse."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.server.utility import check_vote_counts

# Probabilities below this cannot matter for any level that one would act on.
_NEGLIGIBLE = 1e-18


def drift_p_value(
    n: ArrayLike, positive: ArrayLike, new_n: ArrayLike, new_positive: ArrayLike
) -> float:
    """Return the p-value of so few new votes "right" if nothing got worse.

    ``n`` and ``positive`` [B] count the votes so far and those "right" among them,
    ``new_n`` and ``new_positive`` the newest; a candidate without both says nothing.
    This is Fisher's exact test, one-sided, made one of all candidates: given each
    one's totals, its new votes "right" are hypergeometric, and their sum is compared,
    so that it does not matter which candidates the newest votes are about. A candidate
    with less than half of its total right is reversed, as in MRMA, equation (9): fixed
    by the totals, that choice cannot look like a fall. Counts that are not whole, or
    outside 0..n, are a UserError.
    """
    comparable = (np.asarray(n) > 0) & (np.asarray(new_n) > 0)
    if not comparable.any():
        return 1.0
    old_right, total = check_vote_counts(
        np.asarray(positive)[comparable], np.asarray(n)[comparable]
    )
    new_right, newest = check_vote_counts(
        np.asarray(new_positive)[comparable], np.asarray(new_n)[comparable]
    )
    all_votes, all_right = total + newest, old_right + new_right
    is_reversed = 2 * all_right < all_votes
    all_right = np.where(is_reversed, all_votes - all_right, all_right)
    observed = int(np.where(is_reversed, newest - new_right, new_right).sum())
    least, law = _hypergeometric_sum(all_votes, all_right, newest)
    return min(1.0, float(law[: max(0, observed - least + 1)].sum()))


def is_drift(level: float, drop: float) -> bool:
    """Return whether ``level`` lies below that of ``drop`` standard errors."""
    from scipy.special import ndtr

    return bool(level <= ndtr(-drop))


def _hypergeometric_sum(
    all_votes: NDArray[np.int64],
    all_right: NDArray[np.int64],
    newest: NDArray[np.int64],
) -> tuple[int, NDArray[np.float64]]:
    """Return the law of a sum of hypergeometric numbers."""
    from scipy.stats import hypergeom  # a second; who reads results needs none

    least, law = 0, np.ones(1)
    for total, right, sample_size in zip(all_votes, all_right, newest, strict=True):
        values = np.arange(
            max(0, sample_size + right - total), min(sample_size, right) + 1
        )
        probabilities = hypergeom.pmf(values, total, right, sample_size)
        likely = np.flatnonzero(probabilities > _NEGLIGIBLE)
        least += int(values[likely[0]])
        law = np.convolve(law, probabilities[likely[0] : likely[-1] + 1])
    return least, law
