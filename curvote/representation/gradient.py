"""A client's gradient of the logistic loss as one unit vector, its length hidden too.

With x = (s, z)/L, L^2 = s^2 + d E[z^2] what the public takes for the square of a
record's length, the loss of a client at coefficients w is ln(1 + exp(-y w'x)). Its
downward gradient g = y x/(1 + exp(y w'x)), clipped to length C, is what the unit vector

    (g/C, sqrt(1 - |g/C|^2))

holds. A mechanism that is unbiased for unit vectors is so for g/C: drop the last
number. It hides |g| as well, and where it is less private it is less noisy than a
direction drawn as g/|g| or -g/|g|, which is a number shorter: at epsilon 5, d = 4 and
|g| = C/3 by nearly half, at epsilon 1 and below by nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from curvote import validate
from curvote.errors import UserError

Array = NDArray[np.float64]
Line = tuple[Array, float]


@dataclass(frozen=True, eq=False)
class Gradients:
    """How z (n, d) and labels -1/+1 become unit vectors at public coefficients.

    ``intercept`` is s, beside z; ``clip`` is C; ``square`` is what the public takes for
    the mean square of a z. ``coef`` (p,) is w, p = d + 1: it is about x, not about z.
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
        if coef.shape != (self.p,):
            raise UserError(
                f"coef has shape {coef.shape}; of {self.d} numbers and a constant they"
                f" are ({self.p},)."
            )
        object.__setattr__(self, "coef", coef)

    @property
    def n_classes(self) -> int:
        """Two: labels are signs."""
        return 2

    @property
    def p(self) -> int:
        """Length of x, and of a gradient."""
        return self.d + 1

    @property
    def size(self) -> int:
        """Length of a report: the gradient's, and what fills it up to length 1."""
        return self.p + 1

    @property
    def length(self) -> float:
        """Return L."""
        return float(np.sqrt(self.intercept**2 + self.d * self.square))

    def vectors(self, z: Array, codes: Array) -> Array:
        """Return what each client reports before noise, (n, size), of length 1."""
        x = np.column_stack([np.full(len(z), self.intercept), z]) / self.length
        down = codes * expit(-codes * (x @ self.coef)) / self.clip
        clipped = _clipped(down[:, None] * x)
        rest = np.maximum(1 - np.sum(clipped**2, axis=1), 0)
        return np.column_stack([clipped, np.sqrt(rest)])

    def gradient(self, mean: Array) -> Array:
        """Return the mean clipped gradient (p,) that a mean of reports estimates."""
        return np.asarray(self.clip * mean[: self.p])

    def line(self) -> Line:
        """Return (coef (d,), intercept) of the same classifier, of z."""
        w = self.coef / self.length
        return w[1:], float(w[0] * self.intercept)


def _clipped(rows: Array) -> Array:
    """Return rows of length 1 at most; no square may overflow."""
    largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1)
    scaled = rows / largest
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled / np.maximum(length, 1 / largest))
