"""What a client does with its label: one code of it, noised, once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.entropy import Entropy, SeededEntropy, SystemEntropy
from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.labels.encoders import AUTO, concrete
from curvote.mechanisms import make
from curvote.validate import FloatArray


def encode(
    y: ArrayLike,
    classes: ArrayLike | None = None,
    epsilon: float = 1.0,
    encoder: str = AUTO,
    random_state: int | Entropy | None = None,
    *,
    prior: ArrayLike | None = None,
) -> Codes:
    """Return one epsilon-LDP code for each of the labels ``y`` (n,).

    ``classes`` (K,) are public; without them those that occur in ``y`` are made public.
    """
    known, places = places_of(y, classes)
    name = concrete(encoder, len(known), epsilon)
    given = {} if prior is None else {"prior": np.asarray(prior, dtype=np.float64)}
    mechanism: Any = make(name, epsilon=epsilon, n_classes=len(known), **given)
    values = mechanism.randomize(places, entropy_of(random_state))
    params = {"omega": mechanism.omega} if hasattr(mechanism, "omega") else {}
    return Codes(values, known, mechanism.epsilon, name, params, given.get("prior"))


def places_of(
    y: ArrayLike, classes: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the classes (K,) and the place of each label among them, (n,)."""
    given = np.asarray(y)
    known = np.unique(given) if classes is None else np.asarray(classes)
    order = np.argsort(known, kind="stable")
    found = np.searchsorted(known[order], given).clip(max=len(known) - 1)
    places = order[found]
    if (known[places] != given).any():
        raise UserError(
            f"a label is none of the classes: {', '.join(map(str, known))}."
        )
    return known, places


def entropy_of(random_state: int | Entropy | None) -> Entropy:
    """Return where noise comes from: None is the operating system."""
    if random_state is None:
        return SystemEntropy()
    if isinstance(random_state, int | np.integer):
        return SeededEntropy(int(random_state))
    return random_state


def shares(codes: Codes) -> tuple[FloatArray, FloatArray]:
    """Return the estimated class shares (K,) and their standard errors (K,)."""
    total, squares = np.zeros(codes.n_classes), np.zeros(codes.n_classes)
    for _, part in codes.blocks():
        decoded = part.decode()
        total += decoded.sum(axis=0)
        squares += (decoded**2).sum(axis=0)
    n = len(codes)
    mean = total / n
    return mean, np.sqrt((squares / n - mean**2) / max(1, n - 1))
