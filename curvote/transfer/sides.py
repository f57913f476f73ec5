"""Contrasts of the classes in one server's release, with their error variances.

With S_c the released sum of phi over the records of class c, m the public reference
mean of phi and p_c = <S_c, m> / sum_k <S_k, m> the server's own rate of class c, the
contrast T_c = (S_c - p_c sum_k S_k) / n is p_c times the difference of c's mean from
that of all records: whatever the rates are, it is 0 where a class is as frequent as
everywhere. All of it is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curvote.transfer.forms.base import Array

if TYPE_CHECKING:
    from curvote.transfer.forms.base import ClassSums
    from curvote.transfer.releasing import Release
    from curvote.transfer.task import Task

# No class is taken to be rarer: a noised rate may even be negative.
RAREST = 0.02
# The mean square of the inner product of a query with a record.
SPREAD = 1.0


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


def class_sum_contrasts(form: ClassSums, task: Task, release: Release) -> Contrasts:
    """Return the contrasts of a release of class sums."""
    values = release.values.astype(np.float64) / release.n
    sums = form.weights(task, values)
    rates = _class_rates(form.reference(task, sums))
    mean = sums.sum(axis=0)
    used_rows = slice(1, 2) if len(sums) == 2 else slice(None)
    rows = (sums - np.outer(rates, mean))[used_rows]
    rows = rows - np.outer(form.reference(task, rows), form.constant(task))
    row_scale = (1 - rates[used_rows]) ** 2 + (len(rates) - 1) * rates[used_rows] ** 2
    unit = (release.sigma / form.unit(task) / release.n) ** 2
    main = rows @ form.main(task)
    noise = unit * float(row_scale.mean())
    return Contrasts(release.server, release.n, rates, rows, main, noise)


def _class_rates(reference: Array) -> Array:
    """Return class shares (K,) that sum to 1, none below `RAREST`."""
    total = float(reference.sum())
    if total <= 0:
        return np.full(len(reference), 1 / len(reference))
    least = 2 * RAREST / len(reference)
    shares = np.maximum(reference / total, least)
    return np.asarray(shares / shares.sum())
