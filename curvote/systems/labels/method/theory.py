"""Theory of classifiers where P(class | x) is known (Zhao et al. 2025).

``eta`` (n, K) are the regression functions (4) at n points drawn like the records:
means over the points stand for the integrals over the features' density.
"""

import numpy as np
from numpy.typing import ArrayLike

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray

# Probabilities of a row may miss 1 by rounding, not by more.
_ROUNDING = 1e-6


def excess_risk(eta: ArrayLike, predicted: ArrayLike) -> float:
    """Return R - R* of predicted classes, (n,) or (r, n): Proposition 1, (8).

    Never below 0, and 0 exactly where every prediction is a best class.
    """
    table = _check_eta(eta)
    places, (n, size) = np.asarray(predicted), table.shape
    if places.dtype.kind not in "iu" or places.shape[-1:] != (n,):
        raise UserError(
            f"predicted has shape {places.shape} and type {places.dtype}; it must be"
            f" whole numbers (n,) or (r, n), n = {n}."
        )
    if ((places < 0) | (places >= size)).any():
        raise UserError(f"predicted must hold places from 0 to {size - 1}.")
    chosen = table[np.arange(n), places.astype(np.int64)]
    return float(np.mean(table.max(axis=1) - chosen))


def margins(eta: ArrayLike) -> FloatArray:
    """Return the lead of the best class over the second, eta* - eta_s, (n,): (19).

    0 where two classes are equally good.
    """
    top = np.partition(_check_eta(eta), -2, axis=1)
    return np.asarray(top[:, -1] - top[:, -2])


def excess_bound(eta: ArrayLike, delta: ArrayLike, gap: float) -> float:
    """Return the bound of R - R* by Theorem 2: (20), (21).

    The mean over the points of 2 D 1[eta* - eta_s <= 2 D] with D = delta / gap, for one
    training set; the expectation in (20) is the mean over ``delta`` of several, (r, n).
    This is (20); the last line of its proof, (28), has an expectation where the first
    integral belongs.

    Args:
        eta: P(class | x) at n points, (n, K).
        delta: the largest error of the learner's K outputs at each point (18), as a
            regression of the code's bits; (n,) or (r, n), at least 0.
        gap: p - q of the encoder, `vector_gap` for (21); 1 for an error of decoded
            votes, which estimate eta itself. In (0, 1].

    Raises:
        UserError: values outside these ranges, or shapes that do not fit.
    """
    leads, errors = margins(eta), validate.finite(delta=delta)
    if errors.shape[-1:] != leads.shape or (errors < 0).any():
        raise UserError(
            f"delta has shape {errors.shape}; it must hold an error of at least 0 for"
            f" each of the {len(leads)} points."
        )
    if not 0 < gap <= 1:
        raise UserError(f"gap is {gap!r}; it must be p - q of an encoder, in (0, 1].")
    reach = 2 * errors / gap
    return float(np.mean(np.where(leads <= reach, reach, 0.0)))


def vector_gap(epsilon: float) -> float:
    """Return p - q of `unary_symmetric`: (e^(eps/2) - 1)/(e^(eps/2) + 1), (24)."""
    return float(np.tanh(validate.positive(epsilon=epsilon) / 4))


def knn_bound(  # noqa: PLR0917 - what the formula names, in its order
    k: int,
    n_classes: int,
    epsilon: float,
    lipschitz: float,
    r0: ArrayLike,
    delta: float = 0.05,
) -> FloatArray:
    """Return the bound of the error of k-nearest-neighbour means of bits, (36).

    sqrt(ln(2K/delta)/(2k)) by Hoeffding's inequality for the noise, and
    gap L r0 for neighbours that are elsewhere: eta~ = q + gap eta varies gap times as
    fast as eta (24). It bounds (18) at one point with probability at least
    1 - delta - exp(-(1 - ln 2) k), (35). (33) begins with eta_j where eta~_j is meant.

    Args:
        k: the number of neighbours.
        n_classes: K, the number of classes.
        epsilon: the promise of `unary_symmetric`.
        lipschitz: a Lipschitz constant of every eta_j, at least 0.
        r0: the radius that holds a share 2k/N of the features' distribution (32); a
            number, or one a point (n,).
        delta: how often it may fail, in (0, 1).
    """
    k_classes = validate.at_least(2, n_classes=n_classes)
    size = 2 * k_classes / validate.fraction(delta=delta)
    noise = np.sqrt(np.log(size) / (2 * validate.at_least(1, k=k)))
    limits = validate.finite(r0=r0), validate.finite(lipschitz=lipschitz)
    if min(part.min() for part in limits) < 0:
        raise UserError("r0 and lipschitz must be at least 0.")
    return np.asarray(noise + vector_gap(epsilon) * limits[0] * limits[1])


def _check_eta(eta: ArrayLike) -> FloatArray:
    table = validate.finite(eta=eta)
    if table.ndim != 2 or len(table) < 1 or table.shape[1] < 2:
        raise UserError(
            f"eta has shape {table.shape}; it must be (n, K) with n >= 1 and K >= 2."
        )
    if (table < 0).any() or (np.abs(table.sum(axis=1) - 1) > _ROUNDING).any():
        raise UserError("eta must hold probabilities that sum to 1 in each row.")
    return table
