"""What a client does with its number: one noised value of it, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curvote import validate
from curvote.errors import UserError
from curvote.labels.encoding import Noise, entropy_of
from curvote.labels.regression import prior as priors
from curvote.labels.regression.randomizers import AUTO, ON_BINS, concrete, on_bins
from curvote.labels.regression.targets import NoisedTargets, checked_bounds, scaled
from curvote.validate import FloatArray


def noise_targets(
    y: ArrayLike,
    bounds: tuple[float, float],
    epsilon: float = 1.0,
    randomizer: str = AUTO,
    random_state: Noise = None,
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
    labels = scaled(checked_labels(y), checked_bounds(bounds))
    asked = ask(bounds, epsilon, randomizer, prior=prior)
    values = asked.mechanism.randomize(labels, entropy_of(random_state))
    return replace(asked, values=values)


def ask(
    bounds: tuple[float, float],
    epsilon: float,
    randomizer: str = AUTO,
    *,
    prior: ArrayLike | None = None,
) -> NoisedTargets:
    """Return targets of nobody: all that is public before labels are noised."""
    name = concrete(randomizer, validate.positive(epsilon=epsilon))
    known = None if prior is None or name != ON_BINS else priors.stated(prior)
    params = _params(name, known, epsilon)
    limits = checked_bounds(bounds)
    return NoisedTargets(np.empty(0), limits, float(epsilon), name, params, known)


def checked_labels(y: ArrayLike) -> FloatArray:
    """Return numeric labels (n,); NaN, infinity or another shape is a UserError."""
    given = validate.finite(y=y)
    if given.ndim != 1:
        raise UserError(f"y has shape {given.shape}; give one label a client: (n,).")
    return given


def _params(name: str, prior: FloatArray | None, epsilon: float) -> Mapping[str, Any]:
    if name != ON_BINS:
        return {}
    if prior is None:
        raise UserError(
            "rr_on_bins needs a prior: state the shares of equal cells of the bounds,"
            " or let PrivateLabelRegressor ask a share of the clients."
        )
    return on_bins(prior, epsilon)
