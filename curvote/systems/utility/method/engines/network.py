"""Engine of networks: branch and bound on activations between two lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from curvote.base.validate import FloatArray
from curvote.systems.utility.method.engines import base, branch

Envelope = tuple[FloatArray, FloatArray, FloatArray]
Relaxation = Callable[[FloatArray, FloatArray], Envelope]


def relax_relu(low: FloatArray, high: FloatArray) -> Envelope:
    """Return slope, least and largest remainder: max(x, 0) - slope x on [low, high]."""
    open_ = (low < 0) & (high > 0)
    width = np.where(open_, high - low, 1.0)
    slope = np.where(open_, high / width, (low >= 0).astype(np.float64))
    return slope, np.zeros_like(low), np.where(open_, -slope * low, 0.0)


def _relax_rising(
    function: Callable[[FloatArray], FloatArray],
    slope_at: Callable[[FloatArray], FloatArray],
    low: FloatArray,
    high: FloatArray,
) -> Envelope:
    """Return slope and remainders of a function whose slope is least at an end.

    Less the smaller slope of the two ends it still rises, so its ends bound it.
    """
    ends = function(low), function(high)
    slope = np.minimum(slope_at(ends[0]), slope_at(ends[1]))
    return slope, ends[0] - slope * low, ends[1] - slope * high


RELAXATIONS: dict[str, Relaxation] = {
    "identity": lambda low, _: (np.ones_like(low), 0 * low, 0 * low),
    "relu": relax_relu,
    "tanh": partial(_relax_rising, np.tanh, lambda value: 1 - value * value),
    "logistic": partial(_relax_rising, expit, lambda value: value * (1 - value)),
}


# Sums of up to 4,000 products are off by less than this share of their sizes, whatever
# the order of addition.
ROUNDING = 2.0**-40
# scikit-learn compares expit(z) with .5, and shares with shares: below this they tie.
TIE_MARGIN = 2.0**-46
MOST_FEATURES = 4


@dataclass(frozen=True)
class NeuronForm:
    """Linear forms of neurons (m, h) over m boxes, to within ``error``.

    ``slopes`` (m, s, h) times t in [-1, 1]^s; no neuron's exact or computed value, nor
    what it is computed from, exceeds ``size`` (m, h).
    """

    slopes: FloatArray
    centre: FloatArray
    error: FloatArray
    size: FloatArray

    def reach(self) -> FloatArray:
        """Return the largest distance of values from the centre, (m, h)."""
        return np.asarray(np.abs(self.slopes).sum(axis=1) + self.error)

    def of(self, which: NDArray[np.bool_]) -> NeuronForm:
        """Return the forms over some of the boxes."""
        parts = self.slopes, self.centre, self.error, self.size
        return NeuronForm(*(part[which] for part in parts))

    def next_layer(self, weights: FloatArray, shift: FloatArray) -> NeuronForm:
        """Return the next layer's values before its activation."""
        absolute = np.abs(weights)
        size = self.size @ absolute + np.abs(shift)
        error = self.error @ absolute + ROUNDING * size
        m, s, h = self.slopes.shape
        slopes = (self.slopes.reshape(m * s, h) @ weights).reshape(m, s, -1)
        return NeuronForm(slopes, self.centre @ weights + shift, error, size)

    def activate(self, relaxed: Relaxation) -> NeuronForm:
        """Return the values after the activation."""
        reach = self.reach()
        slope, least, most = relaxed(self.centre - reach, self.centre + reach)
        error = slope * self.error + (most - least) / 2
        centre = slope * self.centre + (most + least) / 2
        size = np.abs(centre) + slope * (np.abs(self.centre) + 2 * reach) + error
        return NeuronForm(self.slopes * slope[:, None], centre, error, size)


@dataclass(frozen=True)
class NetworkBounds(branch.Oracle):
    """Oracle that bounds a network's outputs in boxes around n records.

    ``base`` (n, h) is the first layer where the sensitive features are 0, ``size``
    (n, h) what it is added up from; ``first`` (s, h) its weights of those features,
    ``reach`` (s, h) what these are added up from.
    ``layers`` are the weights and shifts that follow.
    """

    base: FloatArray
    size: FloatArray
    first: FloatArray
    reach: FloatArray
    layers: list[tuple[FloatArray, FloatArray]]
    relaxed: Relaxation
    n_classes: int

    def judge(
        self, who: NDArray[np.intp], low: FloatArray, high: FloatArray
    ) -> branch.Verdict:
        """Return the verdict on the boxes; unbounded ones are never certain."""
        with np.errstate(invalid="ignore", over="ignore"):
            centre = low + (high - low) / 2
            radius = np.maximum(high - centre, centre - low)
            size = self.size[who] + (np.abs(centre) + radius) @ self.reach
            slopes = radius[:, :, None] * self.first
            form = NeuronForm(
                slopes, self.base[who] + centre @ self.first, ROUNDING * size, size
            )
            for weights, shift in self.layers[:-1]:
                form = form.activate(self.relaxed).next_layer(weights, shift)
            form = form.activate(self.relaxed)
            # The classes at the centres, certain where they lead throughout.
            weights, shift = self.layers[-1]
            answer = (form.centre @ weights + shift).argmax(axis=1)
            certain = np.zeros(len(answer), dtype=np.bool_)
            effect = np.zeros(form.slopes.shape[:2])
            for c in np.unique(answer):
                at = answer == c
                certain[at], effect[at] = self._class_lead(form.of(at), c)
        finite = np.isfinite(low).all(axis=1) & np.isfinite(high).all(axis=1)
        return branch.Verdict(answer, certain & finite, effect)

    def _class_lead(
        self, form: NeuronForm, c: int
    ) -> tuple[NDArray[np.bool_], FloatArray]:
        """Return the mask of certain leads of class c, and each feature's effect."""
        weights, shift = self.layers[-1]
        ahead = form.next_layer(weights[:, [c]] - weights, shift[c] - shift)
        # scikit-learn subtracts sums, which are longer than the sum of differences.
        sums = form.size @ (np.abs(weights[:, [c]]) + np.abs(weights))
        rounding = ROUNDING * (sums + np.abs(shift[c]) + np.abs(shift))
        least = ahead.centre - ahead.reach() - rounding
        least[:, c] = np.inf
        rival = least.argmin(axis=1)
        rows = np.arange(len(rival))
        return least[rows, rival] > TIE_MARGIN, np.abs(ahead.slopes[rows, :, rival])


class Network(branch.BranchEngine):
    """Engine of `MLPClassifier` with up to four sensitive features."""

    name = "network"

    def oracle(self, question: base.Question) -> NetworkBounds:
        """Return the bounds of the network's outputs."""
        return network_bounds(question)

    def refusal(self, question: base.Question) -> str | None:
        """Return why the engine cannot read the model, or None."""
        from sklearn.neural_network import MLPClassifier

        estimator, front = base.split_front(question)
        if type(estimator) is not MLPClassifier:  # a subclass may answer otherwise
            return f"{type(estimator).__name__} is no network of scikit-learn."
        if isinstance(front, str):
            return front
        if estimator.out_activation_ == "logistic" and estimator.n_outputs_ > 1:
            return "The network answers with several labels at once."
        if estimator.n_layers_ < 3 or len(estimator.classes_) < 2:
            return "The network has no hidden layer, or one class only."
        if len(question.sensitive) <= MOST_FEATURES:
            return None
        return (
            "Branch and bound is of no use for a network with"
            f" {len(question.sensitive)} sensitive features (up to {MOST_FEATURES})."
        )


def network_bounds(question: base.Question) -> NetworkBounds:
    """Return the bounds of the question's network around its records.

    UserError where `Network.refusal` gives a reason.
    """
    estimator, read = base.split_front(question)
    front, values = base.require(read), question.values
    features = front.features(question.records)
    weights, shift = estimator.coefs_[0], estimator.intercepts_[0]
    first, absolute = front.slopes @ weights, np.abs(front.slopes) @ np.abs(weights)
    size = (
        np.abs(features) @ np.abs(weights) + np.abs(shift) + np.abs(values) @ absolute
    )
    layers = list(zip(estimator.coefs_[1:], estimator.intercepts_[1:], strict=True))
    last, last_shift = layers[-1]
    if last.shape[1] == 1:  # one output of two classes becomes the second of two
        layers[-1] = np.hstack([0 * last, last]), np.append(0.0, last_shift)
    return NetworkBounds(
        base=features @ weights + shift - values @ first,
        size=size,
        first=first,
        reach=absolute,
        layers=layers,
        relaxed=RELAXATIONS[estimator.activation],
        n_classes=len(estimator.classes_),
    )
