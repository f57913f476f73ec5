"""Encoding of labels by their owners: one noised code of each, in one round or two."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curvote import validate
from curvote.entropy import Entropy, SeededEntropy, SystemEntropy
from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.labels.encoders import AUTO, explicit_params, mechanism_name
from curvote.labels.places import places_of
from curvote.mechanisms import make
from curvote.random_state import RandomState, check_random_state
from curvote.validate import FloatArray

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
        `curvote.labels.places.places_of`.
    classes : array (K,) or None, default=None
        Public; a class may be nobody's. None takes pandas categories or both truth
        values, else the labels that occur in ``y``, which makes public which do.
    epsilon : float, default=1
        Budget of each label, 2^-20 <= epsilon < inf.
    encoder : str, default="auto"
        A name of `curvote.labels.encoders`; ``auto`` looks at K and epsilon only.
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
    extra_params = {} if prior is None else {"prior": _check_prior(prior, name)}
    mechanism: Any = make(
        name, epsilon=budget, n_classes=len(class_names), **extra_params
    )
    values = mechanism.randomize(places, entropy_of(random_state))
    return Codes(
        values,
        class_names,
        budget,
        name,
        explicit_params(mechanism),
        extra_params.get("prior"),
    )


def _check_prior(prior: ArrayLike, encoder: str) -> FloatArray:
    if encoder != "rr_with_prior":
        raise UserError(f"{encoder} takes no prior; only rr_with_prior does.")
    return validate.finite(prior=prior)


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


def class_shares(codes: Codes) -> tuple[FloatArray, FloatArray]:
    """Return the estimated class shares (K,) and their standard errors (K,).

    The means of decoded codes: they sum to about 1, and a rare class may be below 0.
    Codes of `rr_with_prior` lean towards labels that the prior holds likely. No code at
    all is a UserError.
    """
    if not len(codes):
        raise UserError("there is no code to estimate class shares from.")
    total, squares = np.zeros(codes.n_classes), np.zeros(codes.n_classes)
    for _, part in codes.blocks():
        decoded = part.decode()
        total += decoded.sum(axis=0)
        squares += (decoded**2).sum(axis=0)
    n = len(codes)
    mean = total / n
    return mean, np.sqrt((squares / n - mean**2) / max(1, n - 1))
