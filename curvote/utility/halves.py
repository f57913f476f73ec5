"""The records in two halves: one to choose by, one to show figures of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.entropy import SeededEntropy, permutation
from curvote.errors import UserError
from curvote.utility.known import Known
from curvote.utility.setting import Setting

Half = NDArray[np.bool_]
Halves = tuple[Half, Half]


def halves(setting: Setting, known: Known, seed: int) -> Halves:
    """Return which records (n,) are in each half.

    They are dealt in an order drawn from ``seed``, alternately among those that are
    alike in clean answer, label and what the floors answer: so floors do alike on both
    halves, and the choice is not between two samples of them. Fewer than two records
    are a UserError.
    """
    if setting.n < 2:
        raise UserError(
            "A recommendation is about a population: give 2 records or more. One"
            " client's own figure must not decide what that client sends."
        )
    order = permutation(setting.n, SeededEntropy(seed))
    alike = _alike(setting, known)[order]
    dealt = order[np.argsort(alike, kind="stable")]
    first = np.zeros(setting.n, dtype=bool)
    first[dealt[::2]] = True
    return first, ~first


def _alike(setting: Setting, known: Known) -> NDArray[np.int64]:
    """Return equal numbers for records that floors treat alike, (n,)."""
    columns = [known.clean, known.withheld]
    columns += [each for each in (setting.labels, known.without) if each is not None]
    if known.public is not None:
        columns.append(known.usual)
    return np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].ravel()
