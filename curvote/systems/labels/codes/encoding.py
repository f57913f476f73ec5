"""Encoding of labels by their owners, in one round or two; predictions in that order.

One noised code of each label; a model's predictions follow the codes' classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.entropy import (
    Entropy,
    RandomState,
    SeededEntropy,
    SystemEntropy,
    check_random_state,
)
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray, finite
from curvote.mechanisms.factory import make
from curvote.systems.labels.codes.codes import Codes, places_of
from curvote.systems.labels.codes.encoders import AUTO, explicit_params, mechanism_name

NoiseSource = RandomState | Entropy


def encode(
    y: ArrayLike,
    classes: ArrayLike | None = None,
    epsilon: float = 1.0,
    encoder: str = AUTO,
    random_state: NoiseSource = None,
    *,
    prior: ArrayLike | None = None,
) -> Codes:
    """Return one epsilon-LDP code for each of the labels ``y``.

    Parameters
    ----------
    y : array (n,)
        Text, whole numbers, truth values or pandas categories; bad labels: see
        `curvote.systems.labels.codes.codes.places_of`.
    classes : array (K,) or None, default=None
        Public; a class may be nobody's. None takes pandas categories or both truth
        values, else the labels that occur in ``y``, which makes public which do.
    epsilon : float, default=1
        Budget of each label, 2^-20 <= epsilon < inf.
    encoder : str, default="auto"
        A name of `curvote.systems.labels.codes.encoders`; ``auto`` looks at K and
        epsilon only.
    random_state : int, RandomState, Generator, Entropy or None, default=None
        None draws from the operating system: anything else protects nobody.
    prior : array (K,) or (n, K), or None, default=None
        Public, and for ``rr_with_prior`` only.

    Returns
    -------
    Codes
        All that leaves the labels' owners.

    Examples
    --------
    >>> codes = encode(["b", "a", "b"], classes=["a", "b", "c"], epsilon=1.0)
    >>> print(len(codes), codes.classes, codes.epsilon)
    3 ['a' 'b' 'c'] 1.0
    """
    budget = validate.positive(epsilon=epsilon)
    class_names, places = places_of(y, classes)
    name = mechanism_name(encoder, len(class_names), budget)
    extra_params = {}
    if prior is not None:
        if name != ROUNDS_ENCODER:
            raise UserError(f"{name} takes no prior; only rr_with_prior does.")
        extra_params["prior"] = validate.finite(prior=prior)
    k = len(class_names)
    mechanism: Any = make(name, epsilon=budget, n_classes=k, **extra_params)
    values = mechanism.randomize(places, entropy_of(random_state))
    params = explicit_params(mechanism)
    return Codes(values, class_names, budget, name, params, extra_params.get("prior"))


def entropy_of(random_state: NoiseSource) -> Entropy:
    """Return the source of noise: the operating system for None, else seeded.

    A seed is a whole number >= 0, or drawn from numpy's generators. An `Entropy` is
    taken as it is; anything else is a UserError.
    """
    if random_state is None:
        return SystemEntropy()
    if isinstance(random_state, np.random.RandomState):
        return SeededEntropy(int(random_state.randint(1 << 31)))
    if isinstance(random_state, np.random.Generator):
        return SeededEntropy(int(random_state.integers(1 << 62)))
    if hasattr(random_state, "words"):
        return random_state
    return SeededEntropy(check_random_state(random_state))


def class_shares(codes: Codes, n_words: int = 1) -> tuple[FloatArray, FloatArray]:
    """Return the estimated class shares (K,) and their standard errors (K,).

    So many classes in a row, one for each private word of a label, count as one.

    The means of decoded codes: they sum to about 1, and a rare class may be below 0.
    Codes of `rr_with_prior` lean towards labels that the prior holds likely. No code at
    all is a UserError.
    """
    if not len(codes):
        raise UserError("there is no code to estimate class shares from.")
    total, squares = np.zeros((2, codes.n_classes // n_words))
    for _, part in codes.blocks():
        decoded = part.decode().reshape(len(part), -1, n_words).sum(axis=2)
        total += decoded.sum(axis=0)
        squares += (decoded**2).sum(axis=0)
    n = len(codes)
    mean = total / n
    return mean, np.sqrt(np.maximum(squares / n - mean**2, 0) / max(1, n - 1))


ROUNDS_ENCODER = "rr_with_prior"
# Probabilities (m, K) of the records of second-round clients from first-round codes.
PriorFunction = Callable[[NDArray[np.intp], Codes, NDArray[np.intp]], FloatArray]


def encode_in_two_rounds(  # noqa: PLR0917 - as `encode`, then the rounds
    labels: NDArray[Any],
    classes: NDArray[Any],
    epsilon: float,
    entropy: Entropy,
    order: NDArray[np.intp],
    prior: PriorFunction,
) -> Iterator[Codes]:
    """Yield the codes of the first round, then those of all clients in one.

    Each of the ``labels`` (n,) of known ``classes`` (K,) is asked for once. The first
    half of ``order`` answers first, under a uniform prior: that is `k_rr`. The others'
    prior is what ``prior`` learns from those codes.
    """
    half, k = len(order) // 2, len(classes)
    if not half:
        raise UserError(f"two rounds take two records or more; X has {len(order)}.")
    first, second = order[:half], order[half:]
    settings = classes, epsilon, ROUNDS_ENCODER, entropy
    early = encode(labels[first], *settings, prior=np.full((half, k), 1 / k))
    yield early
    late = encode(labels[second], *settings, prior=prior(first, early, second))
    values = np.concatenate([early.values, late.values])
    priors = np.concatenate([np.asarray(early.prior), np.asarray(late.prior)])
    yield replace(early, values=values, prior=priors)[np.argsort(order)]


@dataclass(frozen=True)
class Predictions:
    """The place of each record's predicted class (n,), and probabilities (n, K)."""

    places: NDArray[np.int64]
    proba: FloatArray

    def __getitem__(self, rows: Any) -> Predictions:
        """Return the predictions for some records."""
        return Predictions(self.places[rows], self.proba[rows])


def predictions_of(model: Any, X: Any, codes: Codes) -> Predictions:
    """Return a fitted classifier's predictions for ``X``, or those that it states.

    Another number of records than of codes, and other classes, are a UserError.
    """
    if not hasattr(model, "predict_proba"):
        proba = _check_shape(finite(model=model), codes)
        return Predictions(proba.argmax(axis=1), proba)
    check_same_classes("model", model.classes_, codes)
    if hasattr(model, "predict_both"):
        predictions: Predictions = model.predict_both(X)
        _check_shape(predictions.proba, codes)
        return predictions
    proba = _check_shape(np.asarray(model.predict_proba(X), dtype=np.float64), codes)
    order = np.argsort(codes.classes, kind="stable")
    places = np.searchsorted(codes.classes[order], model.predict(X))
    return Predictions(order[places], proba)


def check_same_classes(owner: str, classes: Any, codes: Codes) -> None:
    """Refuse codes of other classes than the model's, or in another order."""
    class_names = np.asarray(classes)
    if len(class_names) != codes.n_classes:
        raise UserError(
            f"the codes are of {codes.n_classes} classes, the {owner} has"
            f" {len(class_names)}."
        )
    if not np.array_equal(class_names, codes.classes):
        raise UserError(
            f"the codes are of the classes {_list_names(codes.classes)}; the {owner}"
            f" has {_list_names(class_names)}."
        )


def check_same_length(n: int, codes: Codes) -> None:
    """Refuse codes that are not one for each record."""
    if n != len(codes):
        raise UserError(
            f"X has {n} records, and there are {len(codes)} codes; each record has one."
        )


def _check_shape(proba: FloatArray, codes: Codes) -> FloatArray:
    check_same_length(len(proba), codes)
    if proba.shape[1:] != (codes.n_classes,):
        raise UserError(
            f"probabilities have shape {proba.shape}; codes of {codes.n_classes}"
            f" classes want (n, {codes.n_classes})."
        )
    return proba


def _list_names(classes: NDArray[Any]) -> str:
    text = ", ".join(str(name) for name in classes[:8].tolist())
    return text + (", ..." if len(classes) > 8 else "")


# What a two-sided interval of 95 % leaves at either end, and the quantile of the normal
# law that it ends at.
TAIL: Final = 0.025
Z: Final = 1.959963984540054


class Score(NamedTuple):
    """An estimate, its standard error, and the ends of a 95 % interval.

    None is cut to what the score can be: an accuracy may be above 1 here.

    Parameters
    ----------
    value : float
        The estimate.
    se : float
        Its standard error.
    low, high : float
        The interval.

    Examples
    --------
    >>> score = Score(value=0.8, se=0.01, low=0.78, high=0.82)
    >>> print(f"{score.value} in {score.low} .. {score.high}")
    0.8 in 0.78 .. 0.82
    """

    value: float
    se: float
    low: float
    high: float


def mean_score(values: FloatArray) -> Score:
    """Return the mean of the records' contributions (n,), n >= 2, with its error."""
    if len(values) < 2:
        raise UserError(f"{len(values)} codes have no standard error; give 2 or more.")
    value, se = float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
    return Score(value, se, value - Z * se, value + Z * se)
