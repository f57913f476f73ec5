"""A setting in which public coordinates stand for the sensitive features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from curvote.errors import UserError
from curvote.utility.projections import COVER, Coordinates, active, along
from curvote.utility.setting import NO_PRIOR, Places, Setting


def projected(setting: Setting, how: Coordinates) -> Setting:
    """Return the setting in which the coordinates are the first k columns, and noised.

    Its model rebuilds the features and answers as the given one; its ``reference`` are
    the answers to the records as they were, so that what the coordinates lose counts.
    It has no training data: its floors are those of the given setting.
    """
    sensitive, k = setting.sensitive, len(how.bounds)
    others = np.delete(np.array(setting.features), list(sensitive))
    public = setting.public
    return replace(
        setting,
        model=how.before(setting.model, len(setting.features), sensitive),
        records=how.records(setting.records, sensitive),
        features=(*(f"coordinate {i + 1}" for i in range(k)), *others.tolist()),
        sensitive=tuple(range(k)),
        bounds=how.bounds,
        public=None if public is None else how.records(public, sensitive),
        train=None,
        reference=_reference(setting),
    )


def directions(setting: Setting, numbers: Sequence[int]) -> list[Coordinates]:
    """Return coordinates along so many of the model's ``active`` directions, each.

    From the setting's public records. There may be fewer directions than asked for: a
    number is then that of all, and given once.
    """
    if setting.public is None:
        raise UserError(NO_PRIOR)
    basis = active(setting.model, setting.public, setting.sensitive)
    kept = sorted({min(k, basis.shape[1]) for k in numbers})
    return [along(basis[:, :k], setting.prior, cover=COVER) for k in kept]


def _reference(setting: Setting) -> Places:
    """Return the answers to agree with, (n,)."""
    if setting.reference is None:
        return setting.answers(setting.records)
    return setting.reference
