"""Noise on a client's number: one noised value of it, or a report for the histogram."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms.piecewise import Hybrid, Piecewise, SquareWave
from curvote.mechanisms.randomized_response import RROnBins
from curvote.systems.labels.codes.encoding import NoiseSource, entropy_of
from curvote.systems.labels.regression import targets

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


def optimal_binning(values: ArrayLike, prior: ArrayLike, epsilon: float) -> Binning:
    """Return the best monotone binning for randomized response on it.

    ``values``, (m,), increase strictly; ``prior``, (m,), holds their weights, which
    need not sum to 1. The least expected squared error over all numbers of bins, all
    their bounds and all answers (Ghazi et al. 2022): O(m^3). Values that
    do not increase, or no positive weight, are a UserError.
    """
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
    weights = weights / weights.sum()
    flip = math.exp(-validate.positive(epsilon=epsilon))
    mean = float(weights @ points)
    centred = points - mean
    terms = (weights * centred**power for power in range(3))
    # Sums of the prior, and of it times v and v^2, before each place; v centred.
    moments = [np.append(0.0, np.cumsum(term)) for term in terms]
    best, parents = _cheapest_binnings(_bin_costs(moments, flip))
    losses = best / (1 + flip * np.arange(len(best)))
    k = int(np.argmax(losses <= losses.min() * (1 + _TIE))) + 1
    edge_list = [len(parents)]
    for parent in parents[k - 1 :: -1]:
        edge_list.append(int(parent[edge_list[-1]]))
    edges = np.array(edge_list[::-1])
    share, first = (np.diff(total[edges]) for total in moments[:2])
    stay = 1 - flip
    answers = mean + np.asarray(stay * first / (flip + stay * share))
    return Binning(edges[:-1], answers, losses[k - 1])


def _bin_costs(moments: list[FloatArray], flip: float) -> FloatArray:
    """Return the cost of a bin of the places j..i-1, (m+1, m+1).

    Times (e^eps + k - 1)/e^eps. Its answer is that of all values, who come by chance
    with weight e^-eps, and of its own with 1 - e^-eps more. No bin: infinity.
    """
    # The three sums over the places j..i-1, each (m+1, m+1) by [j, i].
    share, first, second = (total - total[:, None] for total in moments)
    stay, every = 1 - flip, moments[2][-1]
    weight, nothing = flip + stay * share, np.zeros_like(first)
    gain = np.divide((stay * first) ** 2, weight, out=nothing, where=weight > 0)
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
    binning = optimal_binning(targets.cell_middles(m), prior, epsilon)
    cuts = 2 * binning.starts[1:] / m - 1
    return {"cuts": tuple(cuts.tolist()), "answers": tuple(binning.answers.tolist())}


# Equal cells of the bounds: far finer than the bins that any budget up to 5 pays for.
CELLS: Final = 64
# Reports this near are counted as one, so that time does not grow with their number.
_FINE = 1 << 10
_ROUNDS = 1000
# A round that makes the reports no likelier than this, each, was the last.
_GAIN = 1e-6


def report_labels(labels: FloatArray, epsilon: float, entropy: Entropy) -> FloatArray:
    """Return one square wave report of each of ``labels`` (n,) in [-1, 1].

    With all of ``epsilon``: whoever sends one sends nothing else.
    """
    return SquareWave(epsilon=epsilon).randomize(labels, entropy)


def estimate_histogram(reports: FloatArray, epsilon: float) -> FloatArray:
    """Return the estimated shares (64,) of equal cells of [-1, 1], which sum to 1.

    The smoothed maximum likelihood of the reports (Li et al. 2020, section 5.5: EMS).
    """
    near, counts = np.unique(np.rint(reports * _FINE) / _FINE, return_counts=True)
    mechanism = SquareWave(epsilon=epsilon)
    half = mechanism.window.half * mechanism.scale
    edges = np.arange(CELLS + 1) / CELLS
    upper = np.minimum(edges[1:], near[:, None] + half)
    lower = np.maximum(edges[:-1], near[:, None] - half)
    inside = np.clip(upper - lower, 0, None) * CELLS
    likelihood = np.asarray(1 + (float(mechanism.worst_ratio()) - 1) * inside)
    frequencies = counts / len(reports)
    shares, reached = np.full(CELLS, 1 / CELLS), -np.inf
    for _ in range(_ROUNDS):
        chances = likelihood @ shares
        # Averaged with their neighbours', 1 2 1.
        padded = np.pad(shares * ((frequencies / chances) @ likelihood), 1, mode="edge")
        mixed = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
        shares = np.asarray(mixed / mixed.sum())
        before, reached = reached, float(frequencies @ np.log(chances))
        if reached - before < _GAIN:
            break
    return shares


def check_prior(prior: ArrayLike) -> FloatArray:
    """Return the stated shares of equal cells, scaled to sum to 1.

    Fewer than two cells, a negative share and no positive one are a UserError.
    """
    shares = validate.finite(prior=prior)
    if shares.ndim != 1 or len(shares) < 2:
        raise UserError(
            f"prior has shape {shares.shape}; it holds the shares of two or more equal"
            " cells of the bounds: (m,)."
        )
    if (shares < 0).any() or not shares.any():
        raise UserError("prior must hold no negative number, and one above 0.")
    return np.asarray(shares / shares.sum())


def noise_targets(
    y: ArrayLike,
    bounds: tuple[float, float],
    epsilon: float = 1.0,
    randomizer: str = AUTO,
    random_state: NoiseSource = None,
    *,
    prior: ArrayLike | None = None,
) -> targets.NoisedTargets:
    """Return one epsilon-LDP value for each of the labels ``y``.

    Parameters
    ----------
    y : array (n,)
        Finite numbers.
    bounds : (lower, upper)
        Public; labels beyond count as lying on them.
    epsilon : float, default=1
        Budget of each label.
    randomizer : "auto", "piecewise", "hybrid" or "rr_on_bins", default="auto"
        As in `PrivateLabelRegressor`.
    random_state : int, RandomState, Generator, Entropy or None, default=None
        None draws from the operating system: anything else protects nobody.
    prior : array (m,) or None, default=None
        Public shares of m equal cells of the bounds, which the bins of ``rr_on_bins``
        are optimal for; that randomizer without one is a UserError.

    Returns
    -------
    NoisedTargets
        All that leaves the labels' owners.

    Examples
    --------
    >>> ages = noise_targets([31, 47, 78], bounds=(0, 100), epsilon=4.0)
    >>> print(ages.randomizer, ages.variance([50.0]).round())
    piecewise [212.]
    """
    labels = targets.to_unit_interval(check_numbers(y), targets.check_bounds(bounds))
    template = make_template(bounds, epsilon, randomizer, prior=prior)
    values = template.mechanism.randomize(labels, entropy_of(random_state))
    return replace(template, values=values)


def make_template(
    bounds: tuple[float, float],
    epsilon: float,
    randomizer: str = AUTO,
    *,
    prior: ArrayLike | None = None,
) -> targets.NoisedTargets:
    """Return empty targets with all that is public before labels are noised."""
    name = randomizer_name(randomizer, validate.positive(epsilon=epsilon))
    cell_shares = None if prior is None or name != ON_BINS else check_prior(prior)
    params: Mapping[str, Any] = {}
    if name == ON_BINS:
        if cell_shares is None:
            raise UserError(
                "rr_on_bins needs a prior: state the shares of equal cells of the"
                " bounds, or let PrivateLabelRegressor ask a share of the clients."
            )
        params = bin_params(cell_shares, epsilon)
    limits = targets.check_bounds(bounds)
    return targets.NoisedTargets(
        np.empty(0), limits, float(epsilon), name, params, cell_shares
    )


def check_numbers(y: ArrayLike) -> FloatArray:
    """Return numeric labels (n,); NaN, infinity or another shape is a UserError."""
    labels = validate.finite(y=y)
    if labels.ndim != 1:
        raise UserError(f"y has shape {labels.shape}; give one label a client: (n,).")
    return labels
