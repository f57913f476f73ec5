"""Weights of public records in a prior, by likeness in insensitive features.

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
_UNLIKE_WEIGHT = 1e-3
# Standard errors by which it must guess better than a prior of all alike.
CLEAR_ERRORS = 2.0
# Public records on which the reach is chosen.
_SAMPLE_SIZE = 400


def prior_weights(setting: Setting) -> FloatArray | None:
    """Return the weight of each public record for each record, (n, m).

    exp(-distance^2 / (2 reach^2)), the distance a root mean square over the other
    features, each in public standard deviations. The reach is the one of `REACHES`
    with which public records' answers are guessed best from the other public records,
    nothing being sent; None, all weigh alike, where no reach does clearly better.
    """
    public = setting.public
    if public is None or not setting.alike:
        return None
    columns = _public_columns(public, setting.sensitive)
    if not columns or len(public) < 2:
        return None
    sample = public[:_SAMPLE_SIZE]
    squared = _distances(sample[:, columns], public[:, columns])
    np.fill_diagonal(squared, np.inf)  # no record is its own prior
    best = _best_reach(setting.put(sample), setting.answers(sample), squared)
    if best == np.inf:
        return None
    return _kernel_weights(
        _distances(setting.records[:, columns], public[:, columns]), best
    )


def _public_columns(public: FloatArray, sensitive: tuple[int, ...]) -> list[int]:
    """Return the insensitive columns that differ among public records."""
    columns = np.setdiff1d(np.arange(public.shape[1]), sensitive)
    return [int(column) for column in columns if np.ptp(public[:, column]) > 0]


def _distances(records: FloatArray, public: FloatArray) -> FloatArray:
    """Return mean squared distances in public standard deviations, (n, m)."""
    spread = public.std(axis=0)
    scaled_records, scaled_public = records / spread, public / spread
    squares = (scaled_records**2).sum(axis=1)[:, None] + (scaled_public**2).sum(axis=1)
    return np.asarray(
        np.maximum(squares - 2 * scaled_records @ scaled_public.T, 0) / len(spread)
    )


def _best_reach(votes: NDArray[np.uint16], clean: Places, squared: FloatArray) -> float:
    """Return the reach that guesses best; infinity where none is clearly better."""
    plain = _guesses_right(votes, clean, _kernel_weights(squared, np.inf))
    guesses = [
        _guesses_right(votes, clean, _kernel_weights(squared, candidate))
        for candidate in REACHES
    ]
    best = int(np.argmax([candidate.sum() for candidate in guesses]))
    gain = guesses[best].sum() - plain.sum()
    differ = int(np.count_nonzero(guesses[best] != plain))
    return REACHES[best] if gain > CLEAR_ERRORS * np.sqrt(differ) else np.inf


def _kernel_weights(squared: FloatArray, reach: float) -> FloatArray:
    """Return Gaussian weights of squared distances, rows adding to 1."""
    finite = np.isfinite(squared)
    near = np.exp(-np.where(finite, squared, 0.0) / (2 * reach**2))
    weights_raw = np.where(finite, near + _UNLIKE_WEIGHT, 0.0)
    return np.asarray(weights_raw / weights_raw.sum(axis=1, keepdims=True))


def _guesses_right(
    votes: NDArray[np.uint16], clean: Places, weight: FloatArray
) -> NDArray[np.bool_]:
    """Return whether the prior's likeliest class is each record's clean one."""
    scores = [((votes == c) * weight).sum(axis=1) for c in range(votes.max() + 1)]
    return np.asarray(np.argmax(scores, axis=0) == clean)
