"""Noised numeric labels: what is public about them, how they are read, squared errors.

A reading knows the mechanism's exact law, so the noise's mean and variance are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms.base import ScalarMechanism
from curvote.mechanisms.factory import make
from curvote.mechanisms.randomized_response import RROnBins
from curvote.systems.labels.codes.encoding import Score, mean_score

# Below it the square of an output says nothing of the label's.
_LEAST_SLOPE = 1e-6


class UnbiasedReading:
    """Reads a mechanism whose mean is the label, and its variance a + b label^2.

    ``numbers`` estimate each label, ``squares`` each (label - centre)^2, ``variance``
    is that of the numbers.

    Piecewise, hybrid and Duchi et al. are such. The output squared has the mean
    a + (1 + b) label^2, so squares are unbiased as well. With b = -1 (Duchi et al., and
    the hybrid below epsilon 0.61, of two outputs only) nothing is said of the square.
    """

    centre = 0.0

    def __init__(self, mechanism: ScalarMechanism) -> None:
        self.mechanism = mechanism
        at_0, at_1 = mechanism.variance(np.array([0.0, 1.0])).tolist()
        self._least, self._slope = at_0, 1 + at_1 - at_0

    def numbers(self, outputs: FloatArray) -> FloatArray:
        """Return the outputs themselves."""
        return outputs

    def squares(self, outputs: FloatArray) -> FloatArray:
        """Return (output^2 - a)/(1 + b); where b is -1, a UserError."""
        if self._slope < _LEAST_SLOPE:
            raise UserError(
                f"{self.mechanism.name} at epsilon {self.mechanism.epsilon:g} has two"
                " outputs, which say nothing of a label's square; a squared error"
                " needs labels noised by piecewise."
            )
        return np.asarray((outputs**2 - self._least) / self._slope)

    def variance(self, labels: FloatArray) -> FloatArray:
        """Return the mechanism's own variance."""
        return self.mechanism.variance(labels)


class CalibratedReading:
    """Reads randomized response on bins, by the prior that its bins were made for.

    The published answer is the mean of the labels that give it (Ghazi et al. 2022), so
    a regression on answers is shrunk towards the mean of all, at epsilon 1 to half and
    less. Here the answers are stretched until they have, under the prior, the mean of
    the labels and slope 1 on them: a regression linear in the label is then right.
    Squares, about the prior's mean, are read from the one-hot bins, each at the prior's
    mean square in it.
    """

    def __init__(self, mechanism: RROnBins, prior: FloatArray) -> None:
        self.mechanism = mechanism
        self.prior, self.cells = prior, cell_middles(len(prior))

    @cached_property
    def centre(self) -> float:
        """Return the mean label under the prior."""
        return float(self.prior @ self.cells)

    @cached_property
    def _mean_and_slope(self) -> tuple[float, float]:
        """Return the mean answer, and the slope of labels on answers."""
        answers, off = self.mechanism.mean(self.cells), self.cells - self.centre
        mean = float(self.prior @ answers)
        shared = float(self.prior @ (off * (answers - mean)))
        return mean, float(self.prior @ off**2) / shared if shared > 0 else 0.0

    def numbers(self, outputs: FloatArray) -> FloatArray:
        """Return the stretched answers."""
        mean, slope = self._mean_and_slope
        return np.asarray(self.centre + slope * (outputs - mean))

    def squares(self, outputs: FloatArray) -> FloatArray:
        """Return the decoded one-hot bins times the mean squares of their labels."""
        bins, k = self.mechanism.bins(self.cells), self.mechanism.k
        squares = (self.cells - self.centre) ** 2
        share = np.bincount(bins, self.prior, k)
        total = np.bincount(bins, self.prior * squares, k)
        mean = np.divide(total, share, out=np.zeros(k), where=share > 0)
        keep, move = float(self.mechanism.keep), float(self.mechanism.move)
        bin_squares = mean[np.searchsorted(self.mechanism.outputs, outputs)]
        return np.asarray((bin_squares - move * mean.sum()) / (keep - move))

    def variance(self, labels: FloatArray) -> FloatArray:
        """Return the answers' exact variance times the squared stretch."""
        slope = self._mean_and_slope[1]
        return np.asarray(self.mechanism.variance(labels) * slope**2)


def cell_middles(m: int) -> FloatArray:
    """Return the middles of m equal cells of [-1, 1]."""
    return np.asarray((2 * np.arange(m) + 1) / m - 1)


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
        numbers = self._reading.numbers(self.values)
        return np.asarray(self._middle + self._half * numbers)

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
    def _reading(self) -> UnbiasedReading | CalibratedReading:
        mechanism = self.mechanism
        if not isinstance(mechanism, RROnBins):
            return UnbiasedReading(mechanism)
        if self.prior is None:
            raise UserError("randomizer rr_on_bins is read by a prior; none is given.")
        return CalibratedReading(mechanism, self.prior)

    @property
    def _middle(self) -> float:
        return (self.bounds[0] + self.bounds[1]) / 2

    @property
    def _half(self) -> float:
        return (self.bounds[1] - self.bounds[0]) / 2


def check_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    """Return (lower, upper); UserError: not two finite numbers that increase."""
    ends = validate.finite(bounds=bounds)
    if ends.shape != (2,) or not ends[0] < ends[1]:
        raise UserError(
            f"bounds is {validate.format_value(bounds)}; give the public lower and"
            " upper end of a label, the lower one first."
        )
    lower, upper = ends.tolist()
    validate.positive(width_of_bounds=upper - lower)
    return lower, upper


def to_unit_interval(y: FloatArray, bounds: tuple[float, float]) -> FloatArray:
    """Return labels on [-1, 1]; those beyond the bounds count as lying on them."""
    lower, upper = bounds
    inside = np.clip(y, lower, upper)
    return np.asarray(2 * ((inside - lower) / (upper - lower)) - 1)


def squared_error(model: Any, X: Any, targets: NoisedTargets) -> Score:
    """Return the mean squared error of ``model`` on records whose labels nobody shows.

    Parameters
    ----------
    model : a fitted regressor, or its predictions (n,)
        It must not have seen the targets.
    X : array (n, d)
        Public features, as the model wants them.
    targets : NoisedTargets
        One for each record.

    Returns
    -------
    Score
        ``value`` is unbiased where `NoisedTargets.squared_errors` is, in the labels'
        unit squared, and may be below 0 where the noise is large; ``low`` to ``high``
        holds the true error in 95 of 100 cases.

    Examples
    --------
    >>> import numpy as np
    >>> from curvote.labels import noise_targets
    >>> y = np.tile([40.0, 60.0], 5000)
    >>> targets = noise_targets(y, bounds=(0, 100), epsilon=4.0, random_state=0)
    >>> score = squared_error(np.full(10000, 50.0), None, targets)
    >>> score.low < 100 < score.high  # the true one
    True
    """
    predictions = model.predict(X) if hasattr(model, "predict") else np.asarray(model)
    return mean_score(targets.squared_errors(predictions))
