"""A setting in which public coordinates stand for the sensitive features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.utility.channel import channel_of
from curvote.utility.projections import COVER, Coordinates, active, along, principal
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


def coordinates_for(
    setting: Setting,
    among: Sequence[int],
    *,
    epsilon: float,
    entropy: Entropy,
    mechanism: str = "joint_box",
    draws: int = 4,
) -> Coordinates:
    """Return the coordinates that agree most at a total of ``epsilon``.

    ``among`` are the numbers tried of the model's ``active`` directions and of
    principal components. They and the choice come from the setting's public records,
    each noised ``draws`` times: no client is asked. UserError without public records.
    """
    if setting.public is None:
        raise UserError(NO_PRIOR)
    public = replace(setting, records=setting.public, reference=None)
    parts = [principal(setting.prior, k) for k in among]
    found = [*directions(setting, among), *parts]
    scores = [
        _agreement(projected(public, how), mechanism, epsilon, entropy, draws)
        for how in found
    ]
    return found[int(np.argmax(scores))]


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


def _agreement(
    setting: Setting, mechanism: str, epsilon: float, entropy: Entropy, draws: int
) -> float:
    """Return the share of noised records whose answer is the reference, by draws."""
    bounds, instead = setting.bounds, setting.instead
    channel = channel_of(mechanism, epsilon=epsilon, bounds=bounds, instead=instead)
    rows = np.tile(setting.records, (draws, 1))
    rows[:, list(setting.sensitive)] = channel.draw(
        np.tile(setting.values, (draws, 1)), entropy
    )
    return float(np.mean(setting.answers(rows) == np.tile(_reference(setting), draws)))


def _reference(setting: Setting) -> Places:
    """Return the answers to agree with, (n,)."""
    if setting.reference is None:
        return setting.answers(setting.records)
    return setting.reference
