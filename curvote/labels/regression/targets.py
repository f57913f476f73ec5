"""Noised numeric labels, one a client, with all that is public about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from curvote import validate
from curvote.errors import UserError
from curvote.labels.regression.readings import Reading, make_reading
from curvote.mechanisms import make
from curvote.mechanisms.base import ScalarMechanism
from curvote.validate import FloatArray


@dataclass(frozen=True, eq=False)
class NoisedTargets:
    """The noised labels of n records: all that left their owners, and what is public.

    Parameters
    ----------
    values : array (n,)
        Outputs of the mechanism, for labels that ``bounds`` map to [-1, 1].
    bounds : (lower, upper)
        Public.
    epsilon : float
        The budget of each label.
    randomizer : str
        The name of the mechanism.
    params : mapping, default={}
        What it is built with beside epsilon.
    prior : array (m,) or None, default=None
        The shares of m equal cells of the bounds that the bins of ``rr_on_bins`` were
        made for.

    Examples
    --------
    >>> from curvote.labels import noise_targets
    >>> ages = noise_targets([31, 47, 78], bounds=(0, 100), epsilon=4.0, random_state=0)
    >>> print(len(ages), ages.randomizer, ages.decode().shape)
    3 piecewise (3,)
    """

    values: FloatArray
    bounds: tuple[float, float]
    epsilon: float
    randomizer: str
    params: Mapping[str, Any] = field(default_factory=dict)
    prior: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        """Return the number of targets and the randomizer: never the values."""
        details = f"{self.randomizer}, epsilon {self.epsilon:g}"
        return f"<{len(self)} targets in {self.bounds}: {details}>"

    def __getitem__(self, rows: Any) -> NoisedTargets:
        """Return the targets of some rows: a slice, a mask or an array of places."""
        return replace(self, values=self.values[rows])

    @property
    def nbytes(self) -> int:
        """Return the number of bytes that the values take."""
        return self.values.nbytes

    @property
    def mechanism(self) -> ScalarMechanism:
        """Return the mechanism that drew the values."""
        mechanism = make(self.randomizer, epsilon=self.epsilon, **self.params)
        return cast("ScalarMechanism", mechanism)

    def decode(self) -> FloatArray:
        """Return an estimate of each label in its own unit, (n,), to regress on.

        Unbiased by ``piecewise`` and ``hybrid``. By ``rr_on_bins``, which forgets
        where in a bin a label lies, the mean and the slope are right under the prior.
        """
        return self._to_unit(self._reading.numbers(self.values))

    def variance(self, y: ArrayLike) -> FloatArray:
        """Return the exact variance of what `decode` makes of labels ``y`` (n,)."""
        labels = to_unit_interval(validate.finite(y=y), self.bounds)
        return np.asarray(self._reading.variance(labels) * self._half**2)

    def squared_errors(self, predictions: ArrayLike) -> FloatArray:
        """Return an estimate of (prediction - label)^2 for each record, (n,).

        f^2 - 2 f z + s, z the decoded label and s an estimate of the label's square,
        all about one centre. Unbiased by ``piecewise``, and by ``hybrid`` above epsilon
        0.61; below, it is a UserError. By ``rr_on_bins`` as far as the prior is right.
        """
        forecast = validate.finite(predictions=predictions)
        if forecast.shape != (len(self),):
            raise UserError(
                f"predictions has shape {forecast.shape}; there are {len(self)} noised"
                f" labels: ({len(self)},)."
            )
        reading = self._reading
        f = (forecast - self._middle) / self._half - reading.centre
        z, squares = reading.numbers(self.values), reading.squares(self.values)
        errors = f**2 - 2 * f * (z - reading.centre) + squares
        return np.asarray(errors * self._half**2)

    @property
    def _reading(self) -> Reading:
        return make_reading(self.mechanism, self.prior)

    @property
    def _middle(self) -> float:
        return (self.bounds[0] + self.bounds[1]) / 2

    @property
    def _half(self) -> float:
        return (self.bounds[1] - self.bounds[0]) / 2

    def _to_unit(self, scaled_: FloatArray) -> FloatArray:
        return np.asarray(self._middle + self._half * scaled_)


def check_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    """Return (lower, upper); UserError: not two finite numbers that increase."""
    ends = validate.finite(bounds=bounds)
    if ends.shape != (2,) or not ends[0] < ends[1]:
        raise UserError(
            f"bounds is {validate.format_value(bounds)}; give the public lower and"
            " upper end"
            " of a label, the lower one first."
        )
    lower, upper = ends.tolist()
    validate.positive(width_of_bounds=upper - lower)
    return lower, upper


def to_unit_interval(y: FloatArray, bounds: tuple[float, float]) -> FloatArray:
    """Return labels on [-1, 1]; those beyond the bounds count as lying on them."""
    lower, upper = bounds
    inside = np.clip(y, lower, upper)
    return np.asarray(2 * ((inside - lower) / (upper - lower)) - 1)
