"""Linear classifiers from noised directions that name a class (1-of-K).

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
from curvote.mechanisms.one_of import one_of_variance
from curvote.representation.direction import Directions
from curvote.representation.simplex import simplex_codes
from curvote.server.directions import (
    Line,
    add_rows,
    classifier_from_moments,
    estimate_second_moment,
)
from curvote.shrinkage import MomentRule, NoisyMoments, solve_weights

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BlockMeans:
    """The mean (K, size) of ``n`` reports, one row for each class."""

    mean: Array
    n: int

    @classmethod
    def from_reports(
        cls, classes: NDArray[np.int64], directions: Array, n_classes: int
    ) -> BlockMeans:
        """Return the means of reports (n,), (n, size); none is a UserError."""
        return cls.from_shards([(classes, directions)], n_classes)

    @classmethod
    def from_shards(
        cls, shards: Iterable[tuple[NDArray[np.int64], Array]], n_classes: int
    ) -> BlockMeans:
        """Return the means of reports in parts; the parts change no bit."""
        sums: list[Array | None] = [None] * n_classes
        n = 0
        for classes, directions in shards:
            class_rows = [directions[classes == k] for k in range(n_classes)]
            sums = [add_rows(*pair) for pair in zip(sums, class_rows, strict=True)]
            n += len(classes)
        if not n:
            raise UserError("no report has come; nothing can be learnt.")
        return cls(np.array(sums) / n, n)

    def noise(self, epsilon: float) -> float:
        """Return the mean variance that privacy adds to a coordinate."""
        return one_of_variance(*self.mean.shape, epsilon) / self.n


def one_of_classifier(
    means: BlockMeans,
    directions: Directions,
    epsilon: float,
    rule: MomentRule = solve_weights,
) -> Line:
    """Return coef and intercept of the classifier from the blocks' means."""
    return classifier_from_moments(
        estimate_block_moments(means, directions, epsilon), directions.intercept, rule
    )


def estimate_block_moments(
    means: BlockMeans, directions: Directions, epsilon: float
) -> NoisyMoments:
    """Return the noised moments that the blocks' means estimate."""
    n_classes, v = len(means.mean), means.noise(epsilon)
    label = (
        simplex_codes(n_classes).T
        @ means.mean[:, : directions.p]
        / np.sqrt(directions.share)
    )
    moments = directions.moments(means.mean.sum(axis=0))
    label_noise = v / directions.share * n_classes / (n_classes - 1)
    return NoisyMoments(
        label, label_noise, estimate_second_moment(moments, n_classes * v, directions)
    )
