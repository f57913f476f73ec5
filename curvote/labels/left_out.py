"""Votes for the training records by models that do not know the records' own codes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.labels.learners.base import Learner
from curvote.labels.predicted import Predictions
from curvote.validate import FloatArray

_FOLDS = 3


Votes = tuple[NDArray[np.intp], FloatArray]


class LeftOutPredictions(NamedTuple):
    """Predictions for training records ``rows`` (r,) without their own codes."""

    rows: NDArray[np.intp]
    predictions: Predictions


def left_out_votes(
    learner: Learner,
    X: FloatArray,
    codes: Codes,
    rng: np.random.Generator,
    unlabelled: FloatArray | None = None,
) -> Votes:
    """Return training records (r,) and the votes (r, K) for them by all others.

    From three folds where the fitted learner has none for nothing.
    """
    if learner.left_out_ is not None:
        rows = learner.left_out_rows_
        rows = np.arange(len(X)) if rows is None else rows
        return rows, learner.left_out_
    return _fold_votes(learner, X, codes, rng, unlabelled)


def _fold_votes(
    learner: Learner,
    X: FloatArray,
    codes: Codes,
    rng: np.random.Generator,
    unlabelled: FloatArray | None,
) -> Votes:
    votes = np.empty((len(X), codes.n_classes))
    for part in np.array_split(rng.permutation(len(X)), _FOLDS):
        rest = np.setdiff1d(np.arange(len(X)), part)
        if not part.size or not rest.size:
            raise UserError(
                f"X has {len(X)} records (n_samples = {len(X)}); probabilities are"
                f" calibrated in {_FOLDS} folds, which takes as many."
            )
        model = clone(learner).fit(X[rest], codes[rest], rng, unlabelled)
        votes[part] = model.votes(X[part])
    return np.arange(len(X)), votes
