"""Records by scalar mechanisms: on all coordinates, or on k sampled ones."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms.base import ScalarMechanism, VectorMechanism
from curvote.mechanisms.law import Mixture, product_law
from curvote.mechanisms.making import make
from curvote.privacy import Budget
from curvote.validate import FloatArray


class PerCoordinate(VectorMechanism):
    """A scalar mechanism on each of ``d`` values, with epsilon/d each.

    ``scalar`` is the mechanism of one coordinate. Values are (n, d), anything else is
    a UserError. ``mean`` and ``variance`` are those of each coordinate, (n, d); the
    privacy loss of a record is the sum over its coordinates.
    """

    def __init__(self, scalar: str, d: int, *, epsilon: float, **params: Any) -> None:
        super().__init__(epsilon=epsilon, d=d)
        self.scalar = _make_scalar(scalar, Budget(epsilon).each(d).epsilon, params)
        self.name, self.unbiased = scalar, self.scalar.unbiased
        self.tight = self.scalar.tight
        self.low, self.high = self.scalar.low, self.scalar.high
        self.unit_scale = self.scalar.unit_scale
        self._params = params

    def __repr__(self) -> str:
        arguments = {"d": self.d, "epsilon": self.epsilon, **self._params}
        listed = [f"{name}={value!r}" for name, value in arguments.items()]
        return f"per_coordinate({', '.join([repr(self.name), *listed])})"

    def clip(self, values: ArrayLike) -> tuple[FloatArray, int]:
        """Return the records clipped, and how many coordinates were outside."""
        return self.scalar.clip(self._check_records(values))

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        return self.scalar.randomize(values, entropy)

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the exact mean of each coordinate of the output, [n, d]."""
        return self.scalar.mean(x)

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the exact variance of each coordinate of the output, [n, d]."""
        return self.scalar.variance(x)

    def law(self, x: ArrayLike) -> Mixture:
        """Return one term, of the scalar mechanism's laws."""
        columns = np.asarray(x, dtype=np.float64).T
        return product_law(*(self.scalar.law(column).terms[0][0] for column in columns))

    def log_ratio(self, x: ArrayLike, x2: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return ln P(at | x) - ln P(at | x2), [n], for records [n, d]."""
        return np.asarray(self.scalar.log_ratio(x, x2, at).sum(axis=-1))

    def possible_mask(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each record whether every coordinate is possible."""
        return np.asarray(self.scalar.possible_mask(outputs).all(axis=-1))

    def tail_bound(self, probability: float) -> float:
        """Return the scalar mechanism's tail bound."""
        return self.scalar.tail_bound(probability)

    def worst_ratio(self) -> Fraction | None:
        """Return the ratio of one coordinate to the power d."""
        ratio = self.scalar.worst_ratio()
        return None if ratio is None else ratio**self.d

    def worst_log_ratio(self) -> float:
        """Return d times the loss of one coordinate."""
        return self.d * self.scalar.worst_log_ratio()


def _make_scalar(name: str, epsilon: float, params: dict[str, Any]) -> ScalarMechanism:
    mechanism = make(name, epsilon=epsilon, **params)
    if not isinstance(mechanism, ScalarMechanism):
        raise UserError(f"{name} is no mechanism for single values; use it as it is.")
    return mechanism


def per_coordinate(name: str, d: int, epsilon: float, **params: Any) -> PerCoordinate:
    """Build a scalar mechanism for records (n, d), spending ``epsilon`` in all.

    Parameters
    ----------
    name : str
        A mechanism for single values.
    d : int
        How many values a record has; each gets epsilon/d.
    epsilon : float
        Budget of a record.
    **params
        The mechanism's own.

    Returns
    -------
    PerCoordinate
        Its ``scalar`` is the mechanism of one value.

    Examples
    --------
    >>> import numpy as np
    >>> from curvote import SystemEntropy
    >>> record = per_coordinate("laplace", d=2, epsilon=1.0)
    >>> record.randomize(np.zeros((5, 2)), SystemEntropy()).shape
    (5, 2)
    >>> record.scalar  # of each number
    Laplace(epsilon=0.5)
    """
    return PerCoordinate(name, d, epsilon=epsilon, **params)
