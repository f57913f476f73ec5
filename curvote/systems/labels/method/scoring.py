"""Scores of a model from noised codes alone: unbiased, with their standard errors."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.systems.labels.codes import encoding
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.regression.targets import NoisedTargets, squared_error


def decode_unbiased(codes: Codes) -> FloatArray:
    """Return unbiased estimates of the one-hot labels whose rows sum to 1, (n, K).

    A one-hot row sums to 1, so what a decoded row has beyond is noise: sharing it out
    takes no mean away, and for two classes of `unary_symmetric` half of the variance.
    """
    decoded = codes.decode()
    excess = decoded.sum(axis=1, keepdims=True) - 1
    return np.asarray(decoded - excess / codes.n_classes)


def unbiased_rows(codes: Codes) -> NDArray[np.bool_]:
    """Return which codes decode without bias, (n,): with a prior, if it is even."""
    if codes.prior is None:
        return np.full(len(codes), codes.mechanism.unbiased)
    prior = np.atleast_2d(codes.prior)
    even = (prior == prior[:, :1]).all(axis=1)
    return np.broadcast_to(even, len(codes))


def refuse_biased_codes(codes: Codes) -> None:
    """Refuse codes that decode with bias: drawn by a prior that is not even."""
    if not unbiased_rows(codes).all():
        raise UserError(
            f"the codes are of encoder {codes.encoder}, which is biased: a score needs"
            " those of another, or of clients whose prior is even."
        )


# A class of a smaller share than one record in so many counts as one that nobody has.
_FEWEST = 1e-4
# Noise alone makes a difference of once its variance in the mean, and seldom of this.
_PULL = 1.5


def balanced_contributions(
    predictions: encoding.Predictions, codes: Codes
) -> FloatArray:
    """Return each record's contribution to the mean recall, (n,)."""
    n, k = len(codes), codes.n_classes
    total, squares, right = np.zeros(k), np.zeros(k), np.zeros(k)
    for rows, part in codes.blocks():
        decoded = decode_unbiased(part)
        total += decoded.sum(axis=0)
        squares += (decoded**2).sum(axis=0)
        right += (decoded * _hit_matrix(predictions.places[rows], codes)).sum(axis=0)
    # A one-hot label is its own square: what the squares are above it is noise.
    noise = (squares - total).clip(0) / n**2
    share, shrinkage = _shrink_shares(total / n, noise, predictions.proba.mean(axis=0))
    present = share > _FEWEST  # shares sum to 1: some class always is
    recall = right[present] / n / share[present]
    decoded_share, share = total[present] / n, share[present]
    values = np.empty(n)
    for rows, part in codes.blocks():
        decoded = decode_unbiased(part)
        hits = _hit_matrix(predictions.places[rows], codes)
        correct = (decoded * hits)[:, present]
        # The influence on each recall to the first order; and the mean of its second
        # order, which is what the ratio of two estimates is off, over n.
        shift = shrinkage * (decoded[:, present] - decoded_share) / share
        first = correct / share - recall - recall * shift
        values[rows] = (first + first * shift / n).mean(axis=1)
    return np.asarray(values + recall.mean())


def _shrink_shares(
    decoded: FloatArray, noise: FloatArray, expected: FloatArray
) -> tuple[FloatArray, float]:
    """Return the shares shrunk to those that the model expects, and the shrinkage.

    As far as they differ by no more than noise (after James & Stein 1961, positive
    part, for more than three classes). A class counts as no rarer than the noise left
    could make it.
    """
    distance = float(((decoded - expected) ** 2).sum())
    pull = _PULL * float(noise.sum()) * (len(decoded) > 3)
    shrinkage = 1 - min(1.0, pull / distance) if pull else 1.0
    shrunk = expected + shrinkage * (decoded - expected)
    return np.maximum(shrunk, shrinkage * np.sqrt(noise)), shrinkage


def _hit_matrix(places: NDArray[np.int64], codes: Codes) -> NDArray[np.bool_]:
    return np.asarray(places[:, None] == np.arange(codes.n_classes))


Scoring = str | Callable[[Any, FloatArray], FloatArray]
ScoreFunction = Callable[[encoding.Predictions], FloatArray]

# scikit-learn's log loss takes no probability for smaller.
_LEAST: Final = float(np.finfo(np.float64).eps)


def private_score(
    model: Any, X: Any, codes: Codes | NoisedTargets, scoring: Scoring = "accuracy"
) -> encoding.Score:
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
    predictions = encoding.predictions_of(model, X, codes)
    return encoding.mean_score(score_contributions(predictions, X, codes, scoring))


def score_contributions(
    predictions: encoding.Predictions, X: Any, codes: Codes, scoring: Scoring
) -> FloatArray:
    """Return each record's contribution to the score, (n,): their mean is it."""
    refuse_biased_codes(codes)
    if callable(scoring):
        by_class = validate.finite(scoring=scoring(X, predictions.proba))
        if by_class.shape != predictions.proba.shape:
            raise UserError(
                f"scoring returned shape {by_class.shape}; it returns what each class"
                f" would score: {predictions.proba.shape}."
            )
        return _weigh_by_codes(by_class, codes)
    validate.one_of(SCORINGS, scoring=scoring)
    if scoring == BALANCED:
        return balanced_contributions(predictions, codes)
    return _weigh_by_codes(LINEAR[scoring](predictions), codes)


def _weigh_by_codes(by_class: FloatArray, codes: Codes) -> FloatArray:
    """Return sum_c s(x, c) times the estimated one-hot label, (n,)."""
    values = np.empty(len(codes))
    for rows, part in codes.blocks():
        values[rows] = np.einsum("ic,ic->i", by_class[rows], decode_unbiased(part))
    return values


BALANCED: Final = "balanced_accuracy"
LINEAR: Final[Mapping[str, ScoreFunction]] = {
    "accuracy": lambda it: np.eye(it.proba.shape[1])[it.places],
    "brier": lambda it: np.sum(it.proba**2, axis=1, keepdims=True) - 2 * it.proba + 1,
    "log_loss": lambda it: -np.log(it.proba.clip(_LEAST)),
}
SCORINGS: Final = (*LINEAR, BALANCED)
# Of which less is better.
LOSSES: Final = ("brier", "log_loss")
