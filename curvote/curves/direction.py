"""Class codes, and unit vectors of records and gradients that clients report.

Of K classes the corners are unit vectors of K - 1 numbers whose sum is 0, so that
sum_k l_k l_k' = K/(K - 1) I. Of two they are -1 and +1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.classes import class_indices
from curvote.base.errors import UserError

Array = NDArray[np.float64]


@lru_cache(maxsize=64)
def simplex_codes(n_classes: int) -> Array:
    """Return the codes of all classes, corners of a simplex, (K, K - 1)."""
    validate.at_least(2, n_classes=n_classes)
    points = np.array([[-1.0], [1.0]])
    for count in range(2, n_classes):
        low = -1 / count
        moved = np.column_stack([points * np.sqrt(1 - low**2), np.full(count, low)])
        points = np.vstack([moved, np.eye(1, count, count - 1)])
    points.setflags(write=False)
    return points


def class_codes(labels: ArrayLike, n_classes: int) -> Array:
    """Return the codes (n, K - 1) of labels (n,)."""
    return np.asarray(simplex_codes(n_classes)[class_indices(labels, n_classes)])


def are_class_codes(rows: Array, n_classes: int) -> bool:
    """Return whether each row of (n, K - 1) is exactly a class code."""
    corner_rows = simplex_codes(n_classes)
    if rows.ndim != 2 or rows.shape[1] != n_classes - 1:
        return False
    nearest = corner_rows[(rows @ corner_rows.T).argmax(axis=1)]
    return bool((nearest == rows).all())


# Of z where its constants fit: a standard normal number, its tanh, or a number whose
# public bounds hold three standard deviations on either side.
MEAN_SQUARE = {
    "standard": 1.0,
    "none": 1.0,
    "tanh": 0.4,
    "max_abs": 0.4,
    "min_max": 1 / 9,
}


@dataclass(frozen=True)
class DirectionMoments:
    """Mean moments of reports: the label's, and two parts of the second.

    ``diagonal`` (p - 1,) and ``off`` (p (p - 1)/2,) are coordinates that keep lengths.
    Without a second moment in the report both are empty.
    """

    label: Array
    diagonal: Array
    off: Array


@dataclass(frozen=True)
class Directions:
    """Unit vectors of records z (n, d) and class codes, and their moments.

    ``intercept`` is s, beside z; ``share`` is a, the part of the squared length that
    the label moment gets, 0 < a <= 1 (1: nothing else is reported). ``square`` is what
    the public takes for the mean square of a z; there are ``n_classes`` K >= 2.
    """

    d: int
    intercept: float
    share: float = 1.0
    square: float = 1.0
    n_classes: int = 2

    def __post_init__(self) -> None:
        validate.at_least(1, d=self.d)
        validate.at_least(2, n_classes=self.n_classes)
        validate.positive(intercept=self.intercept)
        validate.positive(square=self.square)
        if not 0 < self.share <= 1:
            raise UserError(f"share is {self.share}; it must be above 0, at most 1.")

    @property
    def whitened(self) -> Directions:
        """The same directions for whitened z, of mean square 1."""
        return replace(
            self, intercept=self.intercept / np.sqrt(self.square), square=1.0
        )

    @property
    def p(self) -> int:
        """The length of u."""
        return self.d + 1

    @property
    def label_size(self) -> int:
        """The number of coordinates of the label moment."""
        return (self.n_classes - 1) * self.p

    @property
    def size(self) -> int:
        """The length of a report."""
        second = self.p * (self.p + 1) // 2 - 1
        return self.label_size + second * (self.share < 1)

    @property
    def second_scale(self) -> float:
        """The factor from a reported second moment to one of u."""
        return float(np.sqrt((1 - 1 / self.p) / (1 - self.share)))

    def units(self, z: Array) -> Array:
        """Return u (n, p), of length 1."""
        u = np.column_stack([np.full(len(z), self.intercept), z])
        u /= np.abs(u).max(axis=1, keepdims=True)  # or the squares may overflow
        return np.asarray(u / np.linalg.norm(u, axis=1, keepdims=True))

    def vectors(self, z: Array, codes: Array) -> Array:
        """Return each client's report before noise, (n, size), of length 1.

        ``codes`` are (n, K - 1), or the signs (n,) of two classes.
        """
        u = self.units(z)
        scaled = np.sqrt(self.share) * codes.reshape(len(u), self.n_classes - 1)
        first = (scaled[:, :, None] * u[:, None, :]).reshape(len(u), self.label_size)
        if self.share == 1:
            return np.asarray(first)
        from scipy.linalg import helmert  # clients of other messages do without

        # u u' - I/p in coordinates that keep lengths: the diagonal in a basis of the
        # vectors that sum to 0, then what stands above it times sqrt(2).
        above = np.triu_indices(u.shape[1], 1)
        diagonal = (u**2) @ helmert(u.shape[1]).T
        off = np.sqrt(2) * u[:, above[0]] * u[:, above[1]]
        second = np.hstack([diagonal, off])
        return np.hstack([first, second / self.second_scale])

    def moments(self, mean: Array) -> DirectionMoments:
        """Return the moments that the mean of reports (size,) estimates."""
        p, end = self.p, self.label_size
        label = mean[:end].reshape(-1, p) / np.sqrt(self.share)
        second = mean[end:] * (0 if self.share == 1 else self.second_scale)
        return DirectionMoments(label, second[: p - 1], second[p - 1 :])


def second_moment_matrix(diagonal: Array, off: Array) -> Array:
    """Return E[u u'] (p, p) from the two parts of its coordinates."""
    from scipy.linalg import helmert

    p = len(diagonal) + 1
    matrix = np.zeros((p, p))
    matrix[np.triu_indices(p, 1)] = off / np.sqrt(2)
    matrix += matrix.T
    matrix[np.diag_indices(p)] = helmert(p).T @ diagonal + 1 / p
    return matrix


@dataclass(frozen=True)
class Whitening:
    """Public coordinates of a second round: ``matrix`` times z - ``centre``."""

    matrix: Array
    centre: Array

    def __post_init__(self) -> None:
        matrix = validate.finite(matrix=self.matrix)
        centre = validate.finite(centre=self.centre)
        if centre.ndim != 1 or matrix.shape != (len(centre), len(centre)):
            raise UserError(
                f"whitening has a matrix of shape {matrix.shape} and a centre of shape"
                f" {centre.shape}; they must be (d, d) and (d,)."
            )
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "centre", centre)

    def apply(self, z: Array) -> Array:
        """Return the whitened coordinates (n, d) of z (n, d)."""
        values = validate.finite(z=z)
        if values.ndim != 2 or values.shape[1] != len(self.centre):
            raise UserError(
                f"z has shape {values.shape}; these coordinates are of"
                f" {len(self.centre)} numbers."
            )
        return np.asarray((values - self.centre) @ self.matrix.T)


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
        scores = x @ self.coef.T @ corner_vectors.T / 2
        expected = softmax(scores, axis=1) @ corner_vectors
        gradients = (codes.reshape(expected.shape) - expected) / (2 * self.clip)
        # Clipped to length 1.
        rows = (gradients[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1)
        scaled = rows / largest
        length = np.linalg.norm(scaled, axis=1, keepdims=True)
        clipped = np.asarray(scaled / np.maximum(length, 1 / largest))
        remainder = np.maximum(1 - np.sum(clipped**2, axis=1), 0)
        return np.column_stack([clipped, np.sqrt(remainder)])

    def gradient(self, mean: Array) -> Array:
        """Return the mean clipped gradient that a mean report estimates."""
        return np.asarray(self.clip * mean[:-1].reshape(self.coef.shape))

    def line(self) -> Line:
        """Return (coef, intercept) of the same classifier as one of z.

        They are (1, d) and (1,) for two classes, (K, d) and (K,) for more.
        """
        k = self.n_classes
        corner_vectors = simplex_codes(k) if k > 2 else np.ones((1, 1))
        w = corner_vectors @ self.coef / self.length
        return w[:, 1:], w[:, 0] * self.intercept
