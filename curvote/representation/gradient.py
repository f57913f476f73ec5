"""Clipped gradients of the logistic loss as unit vectors of clients.

With x = (s, z)/L, L^2 = s^2 + d E[z^2] what the public takes for the square of a
record's length, class k of K has the score l_k'W x/2 at coefficients W, l_k its corner
of the simplex (`curvote.representation.simplex`), and probability p_k, the softmax of
the scores: of two classes the logistic model of W x. A client's downward gradient

    g = (l_y - sum_k p_k l_k) x'/2,  which of two classes is y x'/(1 + exp(y W x)),

clipped to length C, is what the unit vector

    (g/C, sqrt(1 - |g/C|^2))

holds. A mechanism that is unbiased for unit vectors is so for g/C: drop the last
number. It hides |g| as well, and adds less noise than if g/|g| or -g/|g| were drawn,
with mean g/C, and reported: for p = 5 and |g| = C/3 by nearly half at epsilon 5, by a
tenth at 2, by nothing at 1 and below.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.errors import UserError
from curvote.representation.simplex import simplex_codes

Array = NDArray[np.float64]
Line = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Gradients:
    """Unit vectors of clipped gradients at public coefficients.

    ``intercept`` is s, beside z; ``clip`` is C; ``square`` is what the public takes for
    the mean square of a z. ``coef`` (K - 1, p) is W, p = d + 1: it is about x, not z.
    Constants that are not above 0 and other shapes are a UserError.
    """

    d: int
    intercept: float
    clip: float
    square: float
    coef: Array

    def __post_init__(self) -> None:
        validate.at_least(1, d=self.d)
        validate.positive(intercept=self.intercept)
        validate.positive(clip=self.clip)
        validate.positive(square=self.square)
        coef = validate.finite(coef=self.coef)
        if coef.ndim != 2 or not len(coef) or coef.shape[1] != self.p:
            raise UserError(
                f"coef has shape {coef.shape}; for records of {self.d} numbers it must"
                f" be (K - 1, {self.p})."
            )
        object.__setattr__(self, "coef", coef)

    @property
    def p(self) -> int:
        """The length of x."""
        return self.d + 1

    @property
    def n_classes(self) -> int:
        """The number of classes K, two at least."""
        return len(self.coef) + 1

    @property
    def size(self) -> int:
        """The length of a report."""
        return self.coef.size + 1

    @property
    def length(self) -> float:
        """The assumed length L of a record."""
        return float(np.sqrt(self.intercept**2 + self.d * self.square))

    def vectors(self, z: Array, codes: Array) -> Array:
        """Return each client's report before noise, (n, size), of length 1.

        ``codes`` are (n, K - 1), or the signs (n,) of two classes.
        """
        from scipy.special import softmax  # clients of other messages do without

        x = np.column_stack([np.full(len(z), self.intercept), z]) / self.length
        corner_vectors = simplex_codes(self.n_classes)
        expected = (
            softmax(x @ self.coef.T @ corner_vectors.T / 2, axis=1) @ corner_vectors
        )
        gradients = (codes.reshape(expected.shape) - expected) / (2 * self.clip)
        clipped = _clip_rows(
            (gradients[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        )
        remainder = np.maximum(1 - np.sum(clipped**2, axis=1), 0)
        return np.column_stack([clipped, np.sqrt(remainder)])

    def gradient(self, mean: Array) -> Array:
        """Return the mean clipped gradient that a mean report estimates."""
        return np.asarray(self.clip * mean[:-1].reshape(self.coef.shape))

    def line(self) -> Line:
        """Return (coef, intercept) of the same classifier as one of z.

        They are (1, d) and (1,) for two classes, (K, d) and (K,) for more.
        """
        corner_vectors = (
            simplex_codes(self.n_classes) if self.n_classes > 2 else np.ones((1, 1))
        )
        w = corner_vectors @ self.coef / self.length
        return w[:, 1:], w[:, 0] * self.intercept


def _clip_rows(rows: Array) -> Array:
    """Return rows clipped to length 1."""
    largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1)
    scaled = rows / largest
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled / np.maximum(length, 1 / largest))
