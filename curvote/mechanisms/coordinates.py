"""A scalar mechanism on each coordinate of a record, within one budget."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms.base import ScalarMechanism, VectorMechanism
from curvote.mechanisms.law import Mixture, product
from curvote.mechanisms.making import make
from curvote.privacy import Budget
from curvote.validate import FloatArray


class PerCoordinate(VectorMechanism):
    """Spends ``epsilon`` on a record of ``d`` values, epsilon/d on each.

    ``scalar`` is the mechanism of one coordinate. Values are (n, d), anything else is
    a UserError. ``mean`` and ``variance`` are those of each coordinate, (n, d); the
    privacy loss of a record is the sum over its coordinates.
    """

    def __init__(self, scalar: str, d: int, *, epsilon: float, **params: Any) -> None:
        super().__init__(epsilon=epsilon, d=d)
        self.scalar = _scalar(scalar, Budget(epsilon).each(d).epsilon, params)
        self.name, self.unbiased = scalar, self.scalar.unbiased
        self.tight = self.scalar.tight
        self.low, self.high = self.scalar.low, self.scalar.high
        self.unit_scale = self.scalar.unit_scale
        self._params = params

    def __repr__(self) -> str:
        given = {"d": self.d, "epsilon": self.epsilon, **self._params}
        said = [f"{name}={value!r}" for name, value in given.items()]
        return f"per_coordinate({', '.join([repr(self.name), *said])})"

    def clip(self, values: ArrayLike) -> tuple[FloatArray, int]:
        """Return the records clipped, and how many coordinates were outside."""
        return self.scalar.clip(self._records(values))

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
        return product(*(self.scalar.law(column).terms[0][0] for column in columns))

    def log_ratio(self, x: ArrayLike, x2: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return ln P(at | x) - ln P(at | x2), [n], for records [n, d]."""
        return np.asarray(self.scalar.log_ratio(x, x2, at).sum(axis=-1))

    def possible(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Say for each record whether every coordinate is a possible output."""
        return np.asarray(self.scalar.possible(outputs).all(axis=-1))

    def tail(self, probability: float) -> float:
        """Return the scalar mechanism's: ``probability`` is that of one number."""
        return self.scalar.tail(probability)

    def worst_ratio(self) -> Fraction | None:
        """Return the ratio of one coordinate to the power d."""
        ratio = self.scalar.worst_ratio()
        return None if ratio is None else ratio**self.d

    def worst_log_ratio(self) -> float:
        """Return d times the loss of one coordinate."""
        return self.d * self.scalar.worst_log_ratio()


def _scalar(name: str, epsilon: float, params: dict[str, Any]) -> ScalarMechanism:
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
