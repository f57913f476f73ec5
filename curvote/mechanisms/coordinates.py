"""Records by scalar mechanisms: on all coordinates, or on k sampled ones."""

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray
from curvote.mechanisms import base, exact
from curvote.mechanisms.factory import make
from curvote.mechanisms.registry import MECHANISMS


class PerCoordinate(base.VectorMechanism):
    """A scalar mechanism on each of ``d`` values, with epsilon/d each.

    ``scalar`` is the mechanism of one coordinate. Values are (n, d), anything else is
    a UserError. ``mean`` and ``variance`` are those of each coordinate, (n, d); the
    privacy loss of a record is the sum over its coordinates.
    """

    def __init__(self, scalar: str, d: int, *, epsilon: float, **params: Any) -> None:
        super().__init__(epsilon=epsilon, d=d)
        part = make(scalar, epsilon=Budget(epsilon).each(d).epsilon, **params)
        if not isinstance(part, base.ScalarMechanism):
            raise UserError(
                f"{scalar} is no mechanism for single values; use it as it is."
            )
        self.scalar = part
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

    def law(self, x: ArrayLike) -> base.Mixture:
        """Return one term, of the scalar mechanism's laws."""
        columns = np.asarray(x, dtype=np.float64).T
        return base.product_law(
            *(self.scalar.law(column).terms[0][0] for column in columns)
        )

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


# The epsilon that one more coordinate is worth (Wang et al. 2019, equation 12).
EPSILON_EACH = 2.5


def best_sample_size(epsilon: float, d: int) -> int:
    """Return the recommended number of sampled coordinates."""
    return max(1, math.floor(min(d, epsilon / EPSILON_EACH)))


class Sampled(base.VectorMechanism):
    """Reports k of d coordinates, times d/k, and 0 for the others.

    Wang et al. (2019), algorithm 4. Which k is drawn uniformly, exactly, and without
    the data; each of them gets epsilon/k and the scalar mechanism named by
    ``mechanism`` (domain [-1, 1]; any other is a UserError). ``k`` is
    ``best_sample_size`` if none is given. Unbiased where the scalar mechanism is.
    """

    name = "sampled"

    def __init__(
        self,
        *,
        epsilon: float,
        d: int,
        mechanism: str = "hybrid",
        k: int | None = None,
    ) -> None:
        super().__init__(epsilon=epsilon, d=d)
        size = best_sample_size(epsilon, self.d) if k is None else k
        if validate.at_least(1, k=size) > self.d:
            raise UserError(f"k is {size!r}; it must be at most d, which is {self.d}.")
        self.k = int(size)
        if MECHANISMS.origin(mechanism):  # no key of a stage would count its code
            raise UserError(f"mechanism is {mechanism!r}; sampled takes no plug-in.")
        self.part = per_coordinate(mechanism, self.k, epsilon)
        if self.part.scalar.low != -1:
            raise UserError(
                f"mechanism is {mechanism!r}, which takes values in [0, 1]; records are"
                " in [-1, 1]^d, and a coordinate left out would not be 0 in the middle."
            )
        self.scalar = self.part.scalar
        self.unbiased, self.tight = self.part.unbiased, self.part.tight
        self.scale = self.d / self.k

    @property
    def mechanism(self) -> str:
        """The name of the scalar mechanism."""
        return self.part.name

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        chosen = self._draw_subsets(len(values), entropy)
        reported = self.part.randomize(values[chosen].reshape(-1, self.k), entropy)
        out = np.zeros(values.shape)
        out[chosen] = reported.ravel() * self.scale
        return out

    def _draw_subsets(self, n: int, entropy: Entropy) -> NDArray[np.bool_]:
        """Return uniform subsets of k coordinates, one a row (Floyd)."""
        chosen, rows = np.zeros((n, self.d), dtype=np.bool_), np.arange(n)
        for last in range(self.d - self.k, self.d):
            at = exact.uniform_below(last + 1, n, entropy)
            chosen[rows, np.where(chosen[rows, at], last, at)] = True
        return chosen

    def clip(self, values: ArrayLike) -> tuple[FloatArray, int]:
        """Return the records clipped, and how many coordinates were outside."""
        return self.scalar.clip(self._check_records(values))

    def law(self, x: ArrayLike) -> base.Mixture | None:
        """Return a term for each subset: its coordinates' laws, 0 for the others."""
        count = math.comb(self.d, self.k)
        if count > base.MAX_TERMS:
            return None
        records = self.clip(x)[0]
        scalar_law = self.part.scalar.law
        laws = [scalar_law(x).terms[0][0].scaled(self.scale, 0.0) for x in records.T]
        left_out = base.atomic_law([0.0], np.ones((len(records), 1)))
        chosen = combinations(range(self.d), self.k)
        terms = [
            tuple(laws[i] if i in subset else left_out for i in range(self.d))
            for subset in map(set, chosen)
        ]
        return base.Mixture(np.full((len(records), count), 1 / count), terms)

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the scalar mechanism's mean for each coordinate, (n, d)."""
        return self.scalar.mean(x)

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return d/k (v + m^2) - m^2, (n, d), of the scalar's mean m and variance v."""
        square = self.scalar.mean(x) ** 2
        return np.asarray(self.scale * (self.scalar.variance(x) + square) - square)

    def scalar_outputs(
        self, outputs: ArrayLike
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return the scalar mechanism's outputs, and whether they are possible.

        Multiplying by d/k and dividing again is off by two units in the last place.
        """
        outputs = np.asarray(outputs, dtype=np.float64)
        values = outputs / self.scale
        unit, fits = np.spacing(np.abs(values)), np.zeros(values.shape, dtype=np.bool_)
        for candidate in [values + step * unit for step in range(-2, 3)]:
            hit = candidate * self.scale == outputs
            hit &= self.scalar.possible_mask(candidate)
            values, fits = np.where(hit, candidate, values), fits | hit
        return values, fits

    def possible_mask(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each record whether exactly k coordinates are reported.

        Fewer may be visible where the scalar mechanism itself can give 0.
        """
        _, fits = self.scalar_outputs(outputs)
        hidden, visible = outputs == 0, np.count_nonzero(outputs, axis=-1)
        enough = (visible == self.k) | ((visible < self.k) & self._can_give_zero)
        return np.asarray((fits | hidden).all(axis=-1) & enough)

    def tail_bound(self, probability: float) -> float:
        """Return d/k times the scalar mechanism's tail bound."""
        return self.scale * self.scalar.tail_bound(probability)

    @property
    def _can_give_zero(self) -> bool:
        return bool(self.scalar.possible_mask(np.zeros(1))[0])

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return the log-likelihood over all subsets with the visible ones.

        One coordinate after the other; column j stands for j of them being in the
        subset so far.
        """
        values, _ = self.scalar_outputs(at)
        # ln P(outputs | x) - ln P(outputs | low) of the scalar.
        terms = np.full(values.shape, -np.inf)
        reported = (values != 0) | self._can_give_zero
        inputs = np.broadcast_to(x, values.shape)[reported]
        low = np.full(reported.sum(), self.scalar.low)
        terms[reported] = self.scalar.log_ratio(inputs, low, values[reported])
        sums = np.full((len(terms), self.k + 1), -np.inf)
        sums[:, 0] = 0
        for term, visible in zip(terms.T, values.T != 0, strict=True):
            included = sums[:, :-1] + term[:, None]
            sums[visible] = -np.inf
            sums[:, 1:] = np.logaddexp(sums[:, 1:], included)
        return np.asarray(sums[:, self.k])

    def worst_ratio(self) -> Fraction | None:
        """Return the ratio of one coordinate to the power k."""
        return self.part.worst_ratio()

    def worst_log_ratio(self) -> float:
        """Return k times the loss of one coordinate."""
        return self.part.worst_log_ratio()
