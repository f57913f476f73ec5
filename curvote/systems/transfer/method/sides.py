"""Contrasts of the classes in one server's release, with their error variances.

With S_c the released sum of phi over the records of class c, m the public reference
mean of phi and p_c = <S_c, m> / sum_k <S_k, m> the server's own rate of class c, the
contrast T_c = (S_c - p_c sum_k S_k) / n is p_c times the difference of c's mean from
that of all records: whatever the rates are, it is 0 where a class is as frequent as
everywhere. All of it is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    pass

# The mean square of the inner product of a query with a record.
SPREAD = 1.0


Array = NDArray[np.float64]


class NoisedSums(Protocol):
    """Protocol of the noised numbers of one server, as a form reads them."""

    @property
    def server(self) -> str:
        """The name of the server."""
        ...

    @property
    def n(self) -> int:
        """The public number of its records."""
        ...

    @property
    def values(self) -> NDArray[np.int64]:
        """The released whole numbers."""
        ...

    @property
    def sigma(self) -> float:
        """The standard deviation of their noise, in steps."""
        ...


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Contrasts of one server.

    ``rows`` (R, m) are weights on phi, of the second class where there are two, else
    one for each class, ``main`` (R, k) their part along the public directions in which
    queries differ most: without their constant. ``rates`` (K,) are the classes' shares,
    ``second`` is the mean of phi phi' if it was released. ``noise`` is the variance
    that privacy adds to a coordinate of a row, ``second_noise`` to one of ``second``.
    """

    server: str
    n: int
    rates: Array
    rows: Array
    main: Array
    noise: float
    second: Array | None = None
    second_noise: float = 0.0

    @property
    def sampling(self) -> float:
        """Variance of a contrast at a query that is due to the n records."""
        return SPREAD * self.clear / self.n

    @property
    def variance(self) -> float:
        """Variance of a contrast at a query: sampling and noise."""
        return self.sampling + self.noise

    @property
    def clear(self) -> float:
        """Factor p (1 - p) by which rates shrink a contrast."""
        return float(np.mean(self.rates * (1 - self.rates)))

    @property
    def differences(self) -> Array:
        """Class differences mu_c - mu, (R, k), as for equally frequent classes."""
        shares = self.rates * (1 - self.rates) if len(self.rows) == 1 else self.rates
        return np.asarray(self.main / shares[-len(self.rows) :, np.newaxis])
