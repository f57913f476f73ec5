"""From directions that name a class to a linear classifier, knowing the noise.

A report of `curvote.mechanisms.one_of` is unbiased: the mean of those that name class
k, 0 for the others, is E[y = k; w] of the record's vector w, whose first part is u and
whose second its second moment (`curvote.representation.direction`). Their sum over
classes is E[w], with K times the noise. Of the label moment H = sum_k l_k E[y = k; u]'
every coordinate has K/(K - 1) times the noise of E[y = k; u].
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.mechanisms.one_of import noise
from curvote.representation.direction import Directions
from curvote.representation.simplex import corners
from curvote.server.directions import Line, added, classified, second_of
from curvote.shrinkage import Known, Rule, solve

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Blocks:
    """The mean (K, size) of ``n`` reports, a row a class."""

    mean: Array
    n: int

    @classmethod
    def of(cls, named: NDArray[np.int64], directions: Array, n_classes: int) -> Blocks:
        """Return the mean of reports (n,), (n, size); none at all is a UserError."""
        return cls.over([(named, directions)], n_classes)

    @classmethod
    def over(
        cls, shards: Iterable[tuple[NDArray[np.int64], Array]], n_classes: int
    ) -> Blocks:
        """Return the mean of reports that come in parts; it does not depend on them."""
        sums: list[Array | None] = [None] * n_classes
        n = 0
        for named, directions in shards:
            each = [directions[named == k] for k in range(n_classes)]
            sums = [added(*both) for both in zip(sums, each, strict=True)]
            n += len(named)
        if not n:
            raise UserError("no report has come; nothing can be learnt.")
        return cls(np.array(sums) / n, n)

    def noise(self, epsilon: float) -> float:
        """Return the variance that privacy adds to a coordinate, the mean over all."""
        return noise(*self.mean.shape, epsilon) / self.n


def one_of_round(
    total: Blocks, given: Directions, epsilon: float, rule: Rule = solve
) -> Line:
    """Return coef and intercept of the classifier of z from the blocks' means."""
    return classified(read(total, given, epsilon), given.intercept, rule)


def read(total: Blocks, given: Directions, epsilon: float) -> Known:
    """Return what the means say; M is the public one if it was not asked for."""
    n_classes, v = len(total.mean), total.noise(epsilon)
    label = corners(n_classes).T @ total.mean[:, : given.p] / np.sqrt(given.share)
    moments = given.moments(total.mean.sum(axis=0))
    own = v / given.share * n_classes / (n_classes - 1)
    return Known(label, own, second_of(moments, n_classes * v, given))
