"""Noised numeric labels: their noise, what is public of them, how they are read.

A client's number leaves as one noised value, or as a report for the histogram. A
reading knows the mechanism's exact law, so the noise's mean and variance are known.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms.base import ScalarMechanism
from curvote.mechanisms.factory import make
from curvote.mechanisms.piecewise import Hybrid, Piecewise, SquareWave
from curvote.mechanisms.randomized_response import RROnBins
from curvote.systems.labels.codes import encoding

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


def squared_error(model: Any, X: Any, targets: NoisedTargets) -> encoding.Score:
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
    return encoding.mean_score(targets.squared_errors(predictions))


# So near to the least loss is as good: fewer bins are taken.
_TIE = 1e-12

Places = NDArray[np.int64]


# Bins of m values in order: ``starts`` (k,), their ``answers`` (k,), the ``loss``. Bin
# j holds the values starts[j]..starts[j+1]-1. The loss is the mean squared error of the
# answer that a client gives about its value.
Binning = namedtuple("Binning", "starts answers loss")


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
    # The cost of a bin of the places j..i-1, (m+1, m+1) by [j, i], times
    # (e^eps + k - 1)/e^eps: its answer is that of all values, who come by chance with
    # weight e^-eps, and of its own with 1 - e^-eps more. No bin: infinity.
    share, first, second = (total - total[:, None] for total in moments)
    stay = 1 - flip
    weight, nothing = flip + stay * share, np.zeros_like(first)
    gain = np.divide((stay * first) ** 2, weight, out=nothing, where=weight > 0)
    costs = flip * moments[2][-1] + stay * second - gain
    costs = np.where(np.tri(len(share), dtype=bool), np.inf, np.maximum(costs, 0))
    # The least cost of k = 1..m bins, (m,); parents[k-1][i] is where the last of k bins
    # starts that hold the places before i.
    reached = costs[0]
    best, parents = [reached[-1]], [np.zeros(len(costs), dtype=np.int64)]
    for _ in range(len(costs) - 2):
        ways = reached[:, None] + costs
        parents.append(ways.argmin(axis=0))
        reached = ways.min(axis=0)
        best.append(reached[-1])
    losses = np.array(best) / (1 + flip * np.arange(len(best)))
    k = int(np.argmax(losses <= losses.min() * (1 + _TIE))) + 1
    edge_list = [len(parents)]
    for parent in parents[k - 1 :: -1]:
        edge_list.append(int(parent[edge_list[-1]]))
    edges = np.array(edge_list[::-1])
    share, first = (np.diff(total[edges]) for total in moments[:2])
    answers = mean + np.asarray(stay * first / (flip + stay * share))
    return Binning(edges[:-1], answers, losses[k - 1])


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
    random_state: encoding.NoiseSource = None,
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
    values = template.mechanism.randomize(labels, encoding.entropy_of(random_state))
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
    params: Mapping[str, Any] = {}
    if name == ON_BINS:
        if cell_shares is None:
            raise UserError(
                "rr_on_bins needs a prior: state the shares of equal cells of the"
                " bounds, or let PrivateLabelRegressor ask a share of the clients."
            )
        params = bin_params(cell_shares, epsilon)
    limits = check_bounds(bounds)
    return NoisedTargets(np.empty(0), limits, float(epsilon), name, params, cell_shares)


def check_numbers(y: ArrayLike) -> FloatArray:
    """Return numeric labels (n,); NaN, infinity or another shape is a UserError."""
    labels = validate.finite(y=y)
    if labels.ndim != 1:
        raise UserError(f"y has shape {labels.shape}; give one label a client: (n,).")
    return labels
