"""A setting in which public coordinates stand for the sensitive features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from curvote.errors import UserError
from curvote.utility.projections import (
    COVER,
    Coordinates,
    active_directions,
    coordinates_along,
)
from curvote.utility.setting import NO_PRIOR, Places, Setting


def project_setting(setting: Setting, coordinates: Coordinates) -> Setting:
    """Return the setting in which coordinates stand for the sensitive features.

    Its model rebuilds the features and answers as the given one; its ``reference`` are
    the answers to the records as they were, so that what the coordinates lose counts.
    It has no training data: its floors are those of the given setting.
    """
    sensitive, k = setting.sensitive, len(coordinates.bounds)
    kept_features = np.delete(np.array(setting.features), list(sensitive))
    public = setting.public
    return replace(
        setting,
        model=coordinates.before(setting.model, len(setting.features), sensitive),
        records=coordinates.records(setting.records, sensitive),
        features=(*(f"coordinate {i + 1}" for i in range(k)), *kept_features.tolist()),
        sensitive=tuple(range(k)),
        bounds=coordinates.bounds,
        public=None if public is None else coordinates.records(public, sensitive),
        train=None,
        reference=_reference_answers(setting),
    )


def direction_coordinates(
    setting: Setting, numbers: Sequence[int]
) -> list[Coordinates]:
    """Return coordinates along the model's ``active`` directions.

    From the setting's public records. There may be fewer directions than asked for: a
    number is then that of all, and given once.
    """
    if setting.public is None:
        raise UserError(NO_PRIOR)
    basis = active_directions(setting.model, setting.public, setting.sensitive)
    counts = sorted({min(k, basis.shape[1]) for k in numbers})
    return [coordinates_along(basis[:, :k], setting.prior, cover=COVER) for k in counts]


def _reference_answers(setting: Setting) -> Places:
    """Return the answers to agree with, (n,)."""
    if setting.reference is None:
        return setting.answers(setting.records)
    return setting.reference
