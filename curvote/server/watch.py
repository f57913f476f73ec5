"""Whether the newest voters find the candidates worse than those before them did."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.server.utility import counts

# Probabilities below this cannot matter for any level that one would act on.
_NOTHING = 1e-18


def fall(
    n: ArrayLike, positive: ArrayLike, new_n: ArrayLike, new_positive: ArrayLike
) -> float:
    """Return how probable so few new votes "right" are if nothing became worse, [0, 1].

    ``n`` and ``positive`` [B] count the votes so far and those "right" among them,
    ``new_n`` and ``new_positive`` the newest; a candidate without both says nothing.
    This is Fisher's exact test, one-sided, made one of all candidates: given each
    one's totals, its new votes "right" are hypergeometric, and their sum is compared,
    so that it does not matter which candidates the newest votes are about. A candidate
    with less than half of its total right is reversed, as in MRMA, equation (9): fixed
    by the totals, that choice cannot look like a fall. Counts that are not whole, or
    outside 0..n, are a UserError.
    """
    both = (np.asarray(n) > 0) & (np.asarray(new_n) > 0)
    if not both.any():
        return 1.0
    right, total = counts(np.asarray(positive)[both], np.asarray(n)[both])
    good, newest = counts(np.asarray(new_positive)[both], np.asarray(new_n)[both])
    everybody, known = total + newest, right + good
    turned = 2 * known < everybody
    known = np.where(turned, everybody - known, known)
    observed = int(np.where(turned, newest - good, good).sum())
    least, law = _sum_of(everybody, known, newest)
    return min(1.0, float(law[: max(0, observed - least + 1)].sum()))


def fell(level: float, drop: float) -> bool:
    """Say whether ``level`` lies below that of ``drop`` normal standard errors."""
    from scipy.special import ndtr

    return bool(level <= ndtr(-drop))


def _sum_of(
    everybody: NDArray[np.int64], known: NDArray[np.int64], newest: NDArray[np.int64]
) -> tuple[int, NDArray[np.float64]]:
    """Return the law of a sum of hypergeometric numbers, and its first value."""
    from scipy.stats import hypergeom  # a second; who reads results needs none

    least, law = 0, np.ones(1)
    for total, right, drawn in zip(everybody, known, newest, strict=True):
        values = np.arange(max(0, drawn + right - total), min(drawn, right) + 1)
        each = hypergeom.pmf(values, total, right, drawn)
        likely = np.flatnonzero(each > _NOTHING)
        least += int(values[likely[0]])
        law = np.convolve(law, each[likely[0] : likely[-1] + 1])
    return least, law
