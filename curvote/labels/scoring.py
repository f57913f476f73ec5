"""Scores of a model from noised codes alone: unbiased, with their standard errors.

A score sum_c s(x, c) 1[y = c] stays unbiased when the decoded code takes the place of
the one-hot label. Accuracy, the Brier score and log loss are such scores; balanced
accuracy is made of ratios of two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from curvote import validate
from curvote.errors import UserError
from curvote.labels import balanced
from curvote.labels.codes import Codes
from curvote.labels.decoded import decode_unbiased, refuse_biased_codes
from curvote.labels.predicted import Predictions, predictions_of
from curvote.labels.regression.scoring import squared_error
from curvote.labels.regression.targets import NoisedTargets
from curvote.labels.score import Score, mean_score
from curvote.validate import FloatArray

Scoring = str | Callable[[Any, FloatArray], FloatArray]
ScoreFunction = Callable[[Predictions], FloatArray]

# scikit-learn's log loss takes no probability for smaller.
_LEAST: Final = float(np.finfo(np.float64).eps)


def private_score(
    model: Any, X: Any, codes: Codes | NoisedTargets, scoring: Scoring = "accuracy"
) -> Score:
    """Return the score of ``model`` on records ``X`` whose labels nobody has shown.

    Parameters
    ----------
    model : a fitted classifier, or its probabilities (n, K)
        Anything with ``classes_``, ``predict`` and ``predict_proba``. It must not have
        seen the codes: on those it was trained or chosen by, no score is honest.
    X : (n, d)
        Public features, as the model wants them.
    codes : `Codes`, or the `NoisedTargets` of a regression
        One for each record, by an encoder whose decoded codes are unbiased. Of targets
        the score is the mean squared error: ``scoring`` stays as it is.
    scoring : str or function, default="accuracy"
        One of ``accuracy``, ``balanced_accuracy``, ``brier`` and ``log_loss``.
        ``brier`` is the sum over classes of squared differences, in [0, 2], and
        ``log_loss`` the mean of -ln p: for both less is better. A function of (X, proba
        (n, K)) returns what each class would score, (n, K). ``balanced_accuracy`` is
        the mean of ratios of estimates, one a class: consistent, and rough where a
        class's share is less than twice its standard error.

    Returns
    -------
    Score
        ``value``, ``se``, and ``low`` to ``high``, which holds the model's true score
        in 95 of 100 cases. Raises `UserError` for codes of other classes or length.

    Examples
    --------
    >>> import numpy as np
    >>> from curvote.labels import encode
    >>> y = np.tile(["no", "yes"], 5000)
    >>> codes = encode(y, epsilon=1.0, random_state=0)
    >>> always = np.tile([0.9, 0.1], (10000, 1))  # a model that says "no"
    >>> score = private_score(always, None, codes)
    >>> print(f"{score.value:.2f} +- {score.se:.2f}")
    0.50 +- 0.01
    """
    if isinstance(codes, NoisedTargets):
        return squared_error(model, X, codes)
    if not isinstance(codes, Codes):
        raise UserError(
            f"codes is of type {type(codes).__name__}; give Codes, as encode makes"
            " them. Plain labels are for model.score(X, y)."
        )
    predictions = predictions_of(model, X, codes)
    return mean_score(score_contributions(predictions, X, codes, scoring))


def score_contributions(
    predictions: Predictions, X: Any, codes: Codes, scoring: Scoring
) -> FloatArray:
    """Return each record's contribution to the score, (n,): their mean is it."""
    refuse_biased_codes(codes)
    if callable(scoring):
        return _weigh_by_codes(_call_scoring(scoring, X, predictions.proba), codes)
    validate.one_of(SCORINGS, scoring=scoring)
    if scoring == BALANCED:
        return balanced.balanced_contributions(predictions, codes)
    return _weigh_by_codes(LINEAR[scoring](predictions), codes)


def _weigh_by_codes(by_class: FloatArray, codes: Codes) -> FloatArray:
    """Return sum_c s(x, c) times the estimated one-hot label, (n,)."""
    values = np.empty(len(codes))
    for rows, part in codes.blocks():
        values[rows] = np.einsum("ic,ic->i", by_class[rows], decode_unbiased(part))
    return values


def _call_scoring(
    scoring: Callable[[Any, FloatArray], FloatArray], X: Any, proba: FloatArray
) -> FloatArray:
    by_class = validate.finite(scoring=scoring(X, proba))
    if by_class.shape != proba.shape:
        raise UserError(
            f"scoring returned shape {by_class.shape}; it returns what each class"
            f" would score: {proba.shape}."
        )
    return by_class


def _accuracy(predictions: Predictions) -> FloatArray:
    hit = predictions.places[:, None] == np.arange(predictions.proba.shape[1])
    return np.asarray(hit, dtype=np.float64)


def _brier(predictions: Predictions) -> FloatArray:
    squares = np.sum(predictions.proba**2, axis=1, keepdims=True)
    return np.asarray(squares - 2 * predictions.proba + 1)


def _log_loss(predictions: Predictions) -> FloatArray:
    return np.asarray(-np.log(predictions.proba.clip(_LEAST)))


BALANCED: Final = "balanced_accuracy"
LINEAR: Final[Mapping[str, ScoreFunction]] = {
    "accuracy": _accuracy,
    "brier": _brier,
    "log_loss": _log_loss,
}
SCORINGS: Final = (*LINEAR, BALANCED)
# Of which less is better.
LOSSES: Final = ("brier", "log_loss")
