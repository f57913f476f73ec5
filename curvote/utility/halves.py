"""The records in two halves: one to choose by, one to show figures of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.entropy import SeededEntropy, random_permutation
from curvote.errors import UserError
from curvote.utility.known import Profile
from curvote.utility.setting import Setting

Half = NDArray[np.bool_]
Halves = tuple[Half, Half]


def split_halves(setting: Setting, profile: Profile, seed: int) -> Halves:
    """Return two masks (n,) that split the records in half.

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
    order = random_permutation(setting.n, SeededEntropy(seed))
    group_codes = _floor_groups(setting, profile)[order]
    ordered = order[np.argsort(group_codes, kind="stable")]
    first = np.zeros(setting.n, dtype=bool)
    first[ordered[::2]] = True
    return first, ~first


def _floor_groups(setting: Setting, profile: Profile) -> NDArray[np.int64]:
    """Return a group number for records that floors treat alike, (n,)."""
    columns = [profile.clean, profile.withheld]
    columns += [
        column for column in (setting.labels, profile.without) if column is not None
    ]
    if profile.public is not None:
        columns.append(profile.usual_class)
    return np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].ravel()
