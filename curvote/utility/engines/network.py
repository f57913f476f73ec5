"""Small networks of scikit-learn: branch and bound over lines with a remainder.

Each neuron is kept as a linear form of the sensitive features and a remainder (Singh
et al., "Fast and effective robustness certification", NeurIPS 2018). Where no neuron
bends inside a box the form is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.utility.engines.activations import RELAXED, Relaxed
from curvote.utility.engines.asking import places
from curvote.utility.engines.base import Engine, Question, Surface
from curvote.utility.engines.branch import Oracle, Verdict
from curvote.utility.engines.branched import Effort, branched, restored
from curvote.utility.engines.fronts import undone
from curvote.validate import FloatArray

# Sums of up to 4,000 products are off by less than this share of their sizes, whatever
# the order of addition.
ROUNDING = 2.0**-40
# scikit-learn compares expit(z) with .5, and shares with shares: below this they tie.
TIE = 2.0**-46
MOST_FEATURES = 4


@dataclass(frozen=True)
class Form:
    """Neurons (m, h) over m boxes: ``centre + slopes t`` to within ``error``.

    ``slopes`` (m, s, h) times t in [-1, 1]^s; no neuron's exact or computed value, nor
    what it is computed from, exceeds ``size`` (m, h).
    """

    slopes: FloatArray
    centre: FloatArray
    error: FloatArray
    size: FloatArray

    def reach(self) -> FloatArray:
        """Return how far values lie from the centre at most, (m, h)."""
        return np.asarray(np.abs(self.slopes).sum(axis=1) + self.error)

    def of(self, which: NDArray[np.bool_]) -> Form:
        """Return the form over some of the boxes."""
        parts = self.slopes, self.centre, self.error, self.size
        return Form(*(part[which] for part in parts))

    def through(self, weights: FloatArray, shift: FloatArray) -> Form:
        """Return the next layer's values before its activation."""
        absolute = np.abs(weights)
        size = self.size @ absolute + np.abs(shift)
        error = self.error @ absolute + ROUNDING * size
        m, s, h = self.slopes.shape
        slopes = (self.slopes.reshape(m * s, h) @ weights).reshape(m, s, -1)
        return Form(slopes, self.centre @ weights + shift, error, size)

    def activated(self, relaxed: Relaxed) -> Form:
        """Return the values after the activation."""
        reach = self.reach()
        slope, least, most = relaxed(self.centre - reach, self.centre + reach)
        error = slope * self.error + (most - least) / 2
        centre = slope * self.centre + (most + least) / 2
        size = np.abs(centre) + slope * (np.abs(self.centre) + 2 * reach) + error
        return Form(self.slopes * slope[:, None], centre, error, size)


@dataclass(frozen=True)
class Bounds(Oracle):
    """Bounds of a network's outputs in boxes around n records.

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
    relaxed: Relaxed
    n_classes: int

    def judged(
        self, who: NDArray[np.intp], low: FloatArray, high: FloatArray
    ) -> Verdict:
        """Judge the boxes; nothing is certain of one without an end."""
        with np.errstate(invalid="ignore", over="ignore"):
            form = self._entered(who, low, high)
            for weights, shift in self.layers[:-1]:
                form = form.activated(self.relaxed).through(weights, shift)
            verdict = self._verdict(form.activated(self.relaxed))
        ended = np.isfinite(low).all(axis=1) & np.isfinite(high).all(axis=1)
        return replace(verdict, certain=verdict.certain & ended)

    def _entered(
        self, who: NDArray[np.intp], low: FloatArray, high: FloatArray
    ) -> Form:
        centre = low + (high - low) / 2
        radius = np.maximum(high - centre, centre - low)
        size = self.size[who] + (np.abs(centre) + radius) @ self.reach
        slopes = radius[:, :, None] * self.first
        return Form(slopes, self.base[who] + centre @ self.first, ROUNDING * size, size)

    def _verdict(self, form: Form) -> Verdict:
        """Return the classes at the centres, certain where they lead throughout."""
        weights, shift = self.layers[-1]
        answer = (form.centre @ weights + shift).argmax(axis=1)
        certain = np.zeros(len(answer), dtype=np.bool_)
        effect = np.zeros(form.slopes.shape[:2])
        for c in np.unique(answer):
            at = answer == c
            certain[at], effect[at] = self._lead(form.of(at), c)
        return Verdict(answer, certain, effect)

    def _lead(self, form: Form, c: int) -> tuple[NDArray[np.bool_], FloatArray]:
        """Say where class c leads, and what each feature does to the closest race."""
        weights, shift = self.layers[-1]
        ahead = form.through(weights[:, [c]] - weights, shift[c] - shift)
        # scikit-learn subtracts sums, which are longer than the sum of differences.
        sums = form.size @ (np.abs(weights[:, [c]]) + np.abs(weights))
        off = ROUNDING * (sums + np.abs(shift[c]) + np.abs(shift))
        least = ahead.centre - ahead.reach() - off
        least[:, c] = np.inf
        rival = least.argmin(axis=1)
        rows = np.arange(len(rival))
        return least[rows, rival] > TIE, np.abs(ahead.slopes[rows, :, rival])


class Network(Engine):
    """`MLPClassifier` with up to four sensitive features, scalers in front included."""

    name = "network"

    def refusal(self, question: Question) -> str | None:
        """Return why the model cannot be read in this way, or None."""
        from sklearn.neural_network import MLPClassifier

        estimator, front = undone(question)
        if type(estimator) is not MLPClassifier:  # a subclass may answer otherwise
            return f"{type(estimator).__name__} is no network of scikit-learn."
        if isinstance(front, str):
            return front
        return _unfit(estimator) or _many(len(question.sensitive))

    def surface(self, question: Question) -> Surface:
        """Return what is known around the records: a partition in boxes."""
        model = question.model
        clean = places(model, question.records)
        return branched(question, bounds(question), clean, Effort())

    def restored(self, question: Question, arrays: dict[str, NDArray[Any]]) -> Surface:
        """Return the surface whose ``arrays`` are given."""
        return restored(question, bounds(question), arrays, Effort())


def _unfit(estimator: Any) -> str | None:
    if estimator.out_activation_ == "logistic" and estimator.n_outputs_ > 1:
        return "The network answers with several labels at once."
    if estimator.n_layers_ < 3 or len(estimator.classes_) < 2:
        return "The network has no hidden layer, or one class only."
    return None


def _many(s: int) -> str | None:
    if s <= MOST_FEATURES:
        return None
    return (
        f"Branch and bound is of no use for a network with {s} sensitive features"
        f" (up to {MOST_FEATURES})."
    )


def bounds(question: Question) -> Bounds:
    """Return the bounds of the question's network around its records.

    UserError where `Network.refusal` gives a reason.
    """
    estimator, front = undone(question)
    if isinstance(front, str):
        raise UserError(front)
    features, values = front.features(question.records), question.values
    weights, shift = estimator.coefs_[0], estimator.intercepts_[0]
    first, absolute = front.slopes @ weights, np.abs(front.slopes) @ np.abs(weights)
    size = (
        np.abs(features) @ np.abs(weights) + np.abs(shift) + np.abs(values) @ absolute
    )
    return Bounds(
        base=features @ weights + shift - values @ first,
        size=size,
        first=first,
        reach=absolute,
        layers=_layers(estimator),
        relaxed=RELAXED[estimator.activation],
        n_classes=len(estimator.classes_),
    )


def _layers(estimator: Any) -> list[tuple[FloatArray, FloatArray]]:
    """Return the later layers; one output of two classes becomes the second of two."""
    layers = list(zip(estimator.coefs_[1:], estimator.intercepts_[1:], strict=True))
    weights, shift = layers[-1]
    if weights.shape[1] == 1:
        layers[-1] = np.hstack([0 * weights, weights]), np.append(0.0, shift)
    return layers
