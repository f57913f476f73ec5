"""Randomizers of a number, and the bins of randomized response that suit a prior."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms.piecewise import Hybrid, Piecewise
from curvote.mechanisms.randomized_response import RROnBins
from curvote.systems.labels.regression.targets import cell_middles

# So near to the least loss is as good: fewer bins are taken.
_TIE = 1e-12

Places = NDArray[np.int64]


class Binning(NamedTuple):
    """Bins of m values in order: ``starts`` (k,), their ``answers`` (k,), the ``loss``.

    Bin j holds the values starts[j]..starts[j+1]-1. The loss is the mean squared error
    of the answer that a client gives about its value.
    """

    starts: Places
    answers: FloatArray
    loss: float


class _Moments(NamedTuple):
    """Sums of the prior, and of it times v and v^2, before each place; v centred."""

    share: FloatArray
    first: FloatArray
    second: FloatArray


def optimal_binning(values: ArrayLike, prior: ArrayLike, epsilon: float) -> Binning:
    """Return the best monotone binning for randomized response on it.

    ``values``, (m,), increase strictly; ``prior``, (m,), holds their weights, which
    need not sum to 1. The least expected squared error over all numbers of bins, all
    their bounds and all answers (Ghazi et al. 2022): O(m^3). Values that
    do not increase, or no positive weight, are a UserError.
    """
    points, weights = _check_values(values, prior)
    flip = math.exp(-validate.positive(epsilon=epsilon))
    mean = float(weights @ points)
    centred = points - mean
    terms = (weights * centred**power for power in range(3))
    moments = _Moments(*(np.append(0.0, np.cumsum(term)) for term in terms))
    costs = _bin_costs(moments, flip)
    best, parents = _cheapest_binnings(costs)
    losses = best / (1 + flip * np.arange(len(best)))
    k = int(np.argmax(losses <= losses.min() * (1 + _TIE))) + 1
    edges = _bin_edges(parents, k)
    share, first = (np.diff(total[edges]) for total in moments[:2])
    stay = 1 - flip
    return Binning(
        edges[:-1],
        mean + np.asarray(stay * first / (flip + stay * share)),
        losses[k - 1],
    )


def _check_values(values: ArrayLike, prior: ArrayLike) -> tuple[FloatArray, FloatArray]:
    points, weights = validate.finite(values=values), validate.finite(prior=prior)
    if points.ndim != 1 or points.shape != weights.shape or not points.size:
        raise UserError(
            f"values has shape {points.shape} and prior {weights.shape}; give one"
            " weight for each value: (m,)."
        )
    if (np.diff(points) <= 0).any():
        raise UserError("values must increase strictly.")
    if (weights < 0).any() or not weights.any():
        raise UserError("prior must hold no negative number, and one above 0.")
    return points, weights / weights.sum()


def _sums_between(moments: _Moments) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the three sums over the places j..i-1, each (m+1, m+1) by [j, i]."""
    share, first, second = (total - total[:, None] for total in moments)
    return share, first, second


def _bin_costs(moments: _Moments, flip: float) -> FloatArray:
    """Return the cost of a bin of the places j..i-1, (m+1, m+1).

    Times (e^eps + k - 1)/e^eps. Its answer is that of all values, who come by chance
    with weight e^-eps, and of its own with 1 - e^-eps more. No bin: infinity.
    """
    share, first, second = _sums_between(moments)
    stay, every = 1 - flip, moments.second[-1]
    weight = flip + stay * share
    gain = np.divide(
        (stay * first) ** 2, weight, out=np.zeros_like(first), where=weight > 0
    )
    costs = flip * every + stay * second - gain
    return np.where(np.tri(len(share), dtype=bool), np.inf, np.maximum(costs, 0))


def _cheapest_binnings(costs: FloatArray) -> tuple[FloatArray, list[Places]]:
    """Return the least cost of k = 1..m bins, (m,), and the bins' parents.

    parents[k-1][i] is where the last of k bins starts that hold the places before i.
    """
    reached = costs[0]
    best, parents = [reached[-1]], [np.zeros(len(costs), dtype=np.int64)]
    for _ in range(len(costs) - 2):
        ways = reached[:, None] + costs
        parents.append(ways.argmin(axis=0))
        reached = ways.min(axis=0)
        best.append(reached[-1])
    return np.array(best), parents


def _bin_edges(parents: list[Places], k: int) -> Places:
    """Return the places where k bins begin, and the end: (k+1,)."""
    edges = [len(parents)]
    for parent in parents[k - 1 :: -1]:
        edges.append(int(parent[edges[-1]]))
    return np.array(edges[::-1])


AUTO: Final = "auto"
ON_BINS: Final = RROnBins.name
# By their classes, so that their code counts wherever a randomizer may be named.
RANDOMIZERS: Final = (Piecewise.name, Hybrid.name, ON_BINS)
# The variance of a label that is uniform in its bounds, mapped to [-1, 1].
_UNIFORM: Final = 1 / 3


def randomizer_name(randomizer: str, epsilon: float) -> str:
    """Return the name of the mechanism that a randomizer's name stands for.

    ``auto`` looks at epsilon only: ``piecewise``, which is unbiased whatever the
    labels, where its noise on a label uniform in the bounds has at most that label's
    variance (from epsilon 2.9 on), else ``rr_on_bins``.
    """
    validate.one_of((AUTO, *RANDOMIZERS), randomizer=randomizer)
    if randomizer != AUTO:
        return randomizer
    at_0, at_1 = Piecewise(epsilon=epsilon).variance(np.array([0.0, 1.0]))
    mean = at_0 + (at_1 - at_0) * _UNIFORM
    return Piecewise.name if mean <= _UNIFORM else ON_BINS


def bin_params(prior: FloatArray, epsilon: float) -> Mapping[str, Any]:
    """Return the parameters of ``rr_on_bins``, optimal for shares of equal cells."""
    m = len(prior)
    binning = optimal_binning(cell_middles(m), prior, epsilon)
    cuts = 2 * binning.starts[1:] / m - 1
    return {"cuts": tuple(cuts.tolist()), "answers": tuple(binning.answers.tolist())}
