"""Noised numbers: one value of each client's number, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curvote import validate
from curvote.errors import UserError
from curvote.labels.encoding import NoiseSource, entropy_of
from curvote.labels.regression import prior as priors
from curvote.labels.regression.randomizers import (
    AUTO,
    ON_BINS,
    bin_params,
    randomizer_name,
)
from curvote.labels.regression.targets import (
    NoisedTargets,
    check_bounds,
    to_unit_interval,
)
from curvote.validate import FloatArray


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
    cell_shares = (
        None if prior is None or name != ON_BINS else priors.check_prior(prior)
    )
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
