"""Noise on a client's number: one noised value of it, or a report for the histogram."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from curvote.base import validate
from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms.piecewise import SquareWave
from curvote.systems.labels.codes.encoding import NoiseSource, entropy_of
from curvote.systems.labels.regression.randomizers import (
    AUTO,
    ON_BINS,
    bin_params,
    randomizer_name,
)
from curvote.systems.labels.regression.targets import (
    NoisedTargets,
    check_bounds,
    to_unit_interval,
)

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
        shares = _smooth_neighbours(shares * ((frequencies / chances) @ likelihood))
        before, reached = reached, float(frequencies @ np.log(chances))
        if reached - before < _GAIN:
            break
    return shares


def _smooth_neighbours(shares: FloatArray) -> FloatArray:
    """Return the shares averaged with their neighbours', 1 2 1; they sum to 1."""
    padded = np.pad(shares, 1, mode="edge")
    mixed = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    return np.asarray(mixed / mixed.sum())


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
) -> NoisedTargets:
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
    labels = to_unit_interval(check_numbers(y), check_bounds(bounds))
    template = make_template(bounds, epsilon, randomizer, prior=prior)
    values = template.mechanism.randomize(labels, entropy_of(random_state))
    return replace(template, values=values)


def make_template(
    bounds: tuple[float, float],
    epsilon: float,
    randomizer: str = AUTO,
    *,
    prior: ArrayLike | None = None,
) -> NoisedTargets:
    """Return empty targets with all that is public before labels are noised."""
    name = randomizer_name(randomizer, validate.positive(epsilon=epsilon))
    cell_shares = None if prior is None or name != ON_BINS else check_prior(prior)
    params = _randomizer_params(name, cell_shares, epsilon)
    limits = check_bounds(bounds)
    return NoisedTargets(np.empty(0), limits, float(epsilon), name, params, cell_shares)


def check_numbers(y: ArrayLike) -> FloatArray:
    """Return numeric labels (n,); NaN, infinity or another shape is a UserError."""
    labels = validate.finite(y=y)
    if labels.ndim != 1:
        raise UserError(f"y has shape {labels.shape}; give one label a client: (n,).")
    return labels


def _randomizer_params(
    name: str, prior: FloatArray | None, epsilon: float
) -> Mapping[str, Any]:
    if name != ON_BINS:
        return {}
    if prior is None:
        raise UserError(
            "rr_on_bins needs a prior: state the shares of equal cells of the bounds,"
            " or let PrivateLabelRegressor ask a share of the clients."
        )
    return bin_params(prior, epsilon)
