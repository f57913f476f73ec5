"""Which public records a prior is made of: those alike in what is not sensitive.

The server sees the other features as they are, and they tell about the sensitive ones
(who is married is rarely a child). Using them costs no epsilon.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.utility.setting import Places, Setting
from curvote.validate import FloatArray

# How far alike reaches, in standard deviations of the public records' other features.
REACHES = (1.0, 0.6, 0.4, 0.3)
# What a record that is not alike weighs still.
_UNLIKE = 1e-3
# Standard errors by which it must guess better than a prior of all alike.
CLEARLY = 2.0
# Public records on which the reach is chosen.
_ASKED = 400


def weights(setting: Setting) -> FloatArray | None:
    """Return what each public record weighs for each record, (n, m), rows adding to 1.

    exp(-distance^2 / (2 reach^2)), the distance a root mean square over the other
    features, each in public standard deviations. The reach is the one of `REACHES`
    with which public records' answers are guessed best from the other public records,
    nothing being sent; None, all weigh alike, where no reach does clearly better.
    """
    public = setting.public
    if public is None or not setting.alike:
        return None
    columns = _others(public, setting.sensitive)
    if not columns or len(public) < 2:
        return None
    asked = public[:_ASKED]
    far = _distances(asked[:, columns], public[:, columns])
    np.fill_diagonal(far, np.inf)  # no record is its own prior
    best = _reach(setting.put(asked), setting.answers(asked), far)
    if best == np.inf:
        return None
    return _weighed(_distances(setting.records[:, columns], public[:, columns]), best)


def _others(public: FloatArray, sensitive: tuple[int, ...]) -> list[int]:
    """Return the columns that are not sensitive and differ among public records."""
    columns = np.setdiff1d(np.arange(public.shape[1]), sensitive)
    return [int(each) for each in columns if np.ptp(public[:, each]) > 0]


def _distances(records: FloatArray, public: FloatArray) -> FloatArray:
    """Return mean squared distances in public standard deviations, (n, m)."""
    spread = public.std(axis=0)
    left, right = records / spread, public / spread
    squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)
    return np.asarray(np.maximum(squares - 2 * left @ right.T, 0) / len(spread))


def _reach(votes: NDArray[np.uint16], clean: Places, squared: FloatArray) -> float:
    """Return the reach that guesses best; infinity where none is clearly better."""
    plain = _guessed(votes, clean, _weighed(squared, np.inf))
    right = [_guessed(votes, clean, _weighed(squared, each)) for each in REACHES]
    best = int(np.argmax([each.sum() for each in right]))
    gain = right[best].sum() - plain.sum()
    differ = int(np.count_nonzero(right[best] != plain))
    return REACHES[best] if gain > CLEARLY * np.sqrt(differ) else np.inf


def _weighed(squared: FloatArray, reach: float) -> FloatArray:
    known = np.isfinite(squared)
    near = np.exp(-np.where(known, squared, 0.0) / (2 * reach**2))
    found = np.where(known, near + _UNLIKE, 0.0)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _guessed(
    votes: NDArray[np.uint16], clean: Places, weight: FloatArray
) -> NDArray[np.bool_]:
    """Say for each record if the weighed prior's most likely class is the clean one."""
    scores = [((votes == c) * weight).sum(axis=1) for c in range(votes.max() + 1)]
    return np.asarray(np.argmax(scores, axis=0) == clean)
