"""Scores of a model from noised codes alone: unbiased, with their standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, erfcx

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.systems.labels.codes import encoding
from curvote.systems.labels.codes.codes import NONE, Codes
from curvote.systems.labels.codes.encoders import build_encoder
from curvote.systems.labels.regression.targets import NoisedTargets, squared_error
from curvote.systems.labels.words import Private, count_words


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


# A share so many deviations below 0 counts as that: its inverse would grow without end.
# Chosen on five settings of `benchmarks/bench_coverage.py`, of other labels and codes.
_LEAST_STEPS = -1.0


class Recalls(NamedTuple):
    """Estimates of each class's recall, (K,), and what they were made of.

    With Z the estimated one-hot labels and C = Z where the class is predicted, else 0:
    ``share`` is the mean of Z, ``inverse`` estimates 1/share, ``right`` is the mean of
    C, and ``value`` estimates right/share. All are 0 for a class that nobody has.
    """

    share: FloatArray
    inverse: FloatArray
    right: FloatArray
    value: FloatArray

    @classmethod
    def from_codes(cls, predictions: encoding.Predictions, codes: Codes) -> Recalls:
        """Return the recalls of predictions, by shares of codes alone.

        Unbiased under normal noise: what of C goes with Z is regressed out, so that the
        rest is independent of Z, and 1/share is estimated without bias by Mills' ratio
        of the share over its deviation (Voinov 1985).
        """
        n, k = len(codes), codes.n_classes
        total, squares, right, crossed = np.zeros((4, k))
        for rows, part in codes.blocks():
            decoded = decode_unbiased(part)
            hits = _hit_matrix(predictions.places[rows], codes)
            total += decoded.sum(axis=0)
            squares += (decoded**2).sum(axis=0)
            right += (decoded * hits).sum(axis=0)
            crossed += (decoded**2 * hits).sum(axis=0)
        share, right = total / n, right / n
        # Times n the variance of a share, which is no less than the encoder's noise.
        _, noise = label_noise(codes, float(squares.sum()) / n)
        spread = (squares / n - share**2).clip(noise)
        occurring, noisy = squares > 0, spread > 0
        deviation = np.sqrt(np.where(noisy, spread, 1) / max(1, n - 1))
        steps = (share / deviation).clip(_LEAST_STEPS)
        inverse = np.sqrt(np.pi / 2) * erfcx(steps / np.sqrt(2)) / deviation
        inverse = np.where(noisy, inverse, occurring)  # a class that everybody has: 1/1
        slope = (crossed / n - right * share) / np.where(noisy, spread, 1)
        return cls(share, inverse, right, slope + (right - slope * share) * inverse)

    @property
    def efficiency(self) -> float:
        """How many records of equal classes tell as much as one of these, at most 1."""
        return float(np.count_nonzero(self.inverse) ** 2 / self.inverse.sum())


def balanced_contributions(
    predictions: encoding.Predictions, codes: Codes
) -> FloatArray:
    """Return each record's contribution to the mean recall, (n,)."""
    refuse_biased_codes(codes)
    share, inverse, right, value = Recalls.from_codes(predictions, codes)
    weights, values = inverse / np.count_nonzero(inverse), np.empty(len(codes))
    for rows, part in codes.blocks():
        decoded = decode_unbiased(part)
        correct = decoded * _hit_matrix(predictions.places[rows], codes)
        # The influence on each recall, whose mean is 0.
        values[rows] = (correct - right - value * (decoded - share)) @ weights
    return np.asarray(values + value.sum() / np.count_nonzero(inverse))


def label_noise(codes: Codes, square: float) -> tuple[float, float]:
    """Return the variance of an estimated one-hot label: at its 1, and at a 0.

    For an encoder that treats all classes alike. The two follow from the variance of
    the difference of 1 and 0, which its law gives, and from ``square``, the mean sum of
    squares of an estimate.
    """
    mechanism: Any = codes.mechanism
    if codes.encoder == NONE:
        return 0.0, 0.0
    if codes.prior is not None:  # an even one
        mechanism = build_encoder("k_rr", codes.n_classes, codes.epsilon)
    pair, k = float(mechanism.pair_variance()), codes.n_classes
    every = square - 1  # the variance of all K numbers of a record
    at_label = ((k - 1) * pair - every) / k
    beside = ((k + 1) / (k - 1) * every - pair) / k
    return max(at_label, 0.0), max(beside, 0.0)


def set_noise(codes: Codes, square: float, size: int) -> tuple[float, float]:
    """Return the variance of the sum of ``size`` < K classes' estimated labels.

    With the label among them, and without; the rest is as of `label_noise`. All K sum
    to 1, so what each varies together with the others follows from what it varies.
    """
    (at_label, beside), k = label_noise(codes, square), codes.n_classes
    with_label = -at_label / (k - 1)
    together = (with_label + beside) / -(k - 2) if k > 2 else 0.0
    at_one = at_label + 2 * (size - 1) * with_label
    at_one += (size - 1) * (beside + (size - 2) * together)
    at_zero = size * (beside + (size - 1) * together)
    return max(at_one, 0.0), max(at_zero, 0.0)


def share_interval(
    score: encoding.Score, n: float, at_one: float, at_zero: float
) -> encoding.Score:
    """Return a share's estimate with the exact interval of a noised bit.

    An estimate whose record has variance ``at_one`` where it is right and ``at_zero``
    where it is wrong has mean and variance of that bit, kept with probability p where
    it is 1 and turned to 1 with probability q where it is 0, for one p and q; `k_rr`
    and `subset_selection` send just that bit. So many of ``n`` bits have the interval
    of Clopper and Pearson (1934), never shorter than 95 %.
    """
    slope = 1 + at_one - at_zero
    gap = 1 / math.sqrt(4 * at_zero + slope**2)  # p - q
    q = (1 - slope * gap) / 2
    ones = min(max(n * (q + gap * score.value), 0.0), n)
    low = betaincinv(ones, n - ones + 1, encoding.TAIL) if ones > 0 else 0.0
    high = betaincinv(ones + 1, n - ones, 1 - encoding.TAIL) if ones < n else 1.0
    ends = (float(low) - q) / gap, (float(high) - q) / gap
    return score._replace(low=min(ends[0], score.value), high=max(ends[1], score.value))


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
        the mean of ratios of estimates, one a class: unbiased where each class's share
        is above its standard error, and very rough below.

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
    return score_predictions(predictions, X, codes, scoring)


def score_predictions(
    predictions: encoding.Predictions, X: Any, codes: Codes, scoring: Scoring
) -> encoding.Score:
    """Return the score of predictions for records ``X`` of these codes.

    One that is 1 for equally many classes of each record, not all, and else 0, is a
    share, and has the exact interval of one.
    """
    if scoring == BALANCED:
        score = encoding.mean_score(balanced_contributions(predictions, codes))
        n = len(codes) * Recalls.from_codes(predictions, codes).efficiency
        # Noise is what the error has beyond that of so many records without noise.
        noise = max(score.se**2 * n - score.value * (1 - score.value), 0.0)
        return share_interval(score, n, noise, noise)
    by_class = class_scores(predictions, X, codes, scoring)
    score = encoding.mean_score(_weigh_by_codes(by_class, codes))
    size, alike = int(by_class[0].sum()), np.ptp(by_class.sum(axis=1)) == 0
    is_share = np.isin(by_class, (0, 1)).all() and alike and 0 < size < codes.n_classes
    if not is_share:
        return score
    squares = ((decode_unbiased(it) ** 2).sum() for _, it in codes.blocks())
    at = set_noise(codes, float(sum(squares)) / len(codes), size)
    return share_interval(score, len(codes), *at)


def score_contributions(
    predictions: encoding.Predictions, X: Any, codes: Codes, scoring: Scoring
) -> FloatArray:
    """Return each record's contribution to the score, (n,): their mean is it."""
    if scoring == BALANCED:
        return balanced_contributions(predictions, codes)
    return _weigh_by_codes(class_scores(predictions, X, codes, scoring), codes)


def class_scores(
    predictions: encoding.Predictions, X: Any, codes: Codes, scoring: Scoring
) -> FloatArray:
    """Return what each class would score as the label of each record, (n, K)."""
    refuse_biased_codes(codes)
    if not callable(scoring):
        validate.one_of(SCORINGS, scoring=scoring)
        return LINEAR[scoring](predictions)
    by_class = validate.finite(scoring=scoring(X, predictions.proba))
    if by_class.shape != predictions.proba.shape:
        raise UserError(
            f"scoring returned shape {by_class.shape}; it returns what each class"
            f" would score: {predictions.proba.shape}."
        )
    return by_class


def _weigh_by_codes(by_class: FloatArray, codes: Codes) -> FloatArray:
    """Return sum_c s(x, c) times the estimated one-hot label, (n,)."""
    values = np.empty(len(codes))
    for rows, part in codes.blocks():
        values[rows] = np.einsum("ic,ic->i", by_class[rows], decode_unbiased(part))
    return values


ACCURACY: Final = "accuracy"


def word_scorings(model: Any, X: FloatArray, private: Private) -> dict[str, Scoring]:
    """Return scorings, by name, of a model whose classes are label and private words.

    Each class has the score of the label for a person who knows the words; in
    ``accuracy without COLUMN`` all but that one.
    """
    n_words = count_words(private)
    by_word = model.predict_given_words(X, n_words)
    tables = {
        name: np.stack([score(by_word[:, word]) for word in range(n_words)], axis=2)
        for name, score in LINEAR.items()
    }
    sizes = [len(column["words"]) for column in private]
    joint = model.predict_both(X).proba.reshape(len(X), -1, *sizes)
    labels = np.arange(joint.shape[1]).reshape(-1, *[1] * len(sizes))
    for axis, column in enumerate(private, 2):
        chances = joint.sum(axis=axis, keepdims=True)
        right = labels == chances.argmax(axis=1)[:, np.newaxis]
        name = f"accuracy without {column['name']}"
        tables[name] = np.broadcast_to(right, joint.shape).astype(np.float64)

    def scoring(table: FloatArray) -> Scoring:
        return lambda X, proba: table.reshape(proba.shape)

    return {name: scoring(table) for name, table in tables.items()}


BALANCED: Final = "balanced_accuracy"
LINEAR: Final[Mapping[str, ScoreFunction]] = {
    ACCURACY: lambda it: np.eye(it.proba.shape[1])[it.places],
    "brier": lambda it: np.sum(it.proba**2, axis=1, keepdims=True) - 2 * it.proba + 1,
    "log_loss": lambda it: -np.log(it.proba.clip(_LEAST)),
}
SCORINGS: Final = (*LINEAR, BALANCED)
# Of which less is better.
LOSSES: Final = ("brier", "log_loss")
