"""How much one code of a label says: by its law, and as measured on draws."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from curvote import validate
from curvote.entropy import Entropy, SeededEntropy
from curvote.labels.encoders import built, code_bytes
from curvote.mechanisms.alibi import ONE, Alibi
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.bits import Labels
from curvote.mechanisms.soft_labels import within
from curvote.mechanisms.subset_selection import SubsetSelection
from curvote.mechanisms.unary import UnaryOptimised, UnarySymmetric
from curvote.validate import FloatArray

DRAWS = 20_000
_PARTS = 20


class Efficiency(NamedTuple):
    """What one code of an encoder says of its label.

    ``retention`` is the probability that its likeliest class, at random among equals,
    is the label (of `k_rr`: that the label is kept), the mean over the labels;
    ``ceiling`` the largest that any encoder has, e^eps/K (Zhao et al. 2025, B.1).
    ``signal`` is (p - q)^2 / Var(Z_c - Z_j), ``measured`` the same of draws, and ``se``
    its standard error. ``nbytes`` is what one code takes.
    """

    encoder: str
    n_classes: int
    epsilon: float
    retention: float
    ceiling: float
    signal: float
    measured: float
    se: float
    nbytes: int


def efficiency(
    encoder: str, n_classes: int, epsilon: float, draws: int = DRAWS, seed: int = 0
) -> Efficiency:
    """Return the row of an encoder, named as a mechanism, that needs no prior."""
    mechanism = built(encoder, n_classes, epsilon)
    found, se = measured_signal(mechanism, draws, SeededEntropy(seed))
    return Efficiency(
        mechanism.name,
        mechanism.n_classes,
        mechanism.epsilon,
        retention(mechanism),
        ceiling(n_classes, epsilon),
        signal(mechanism),
        found,
        se,
        code_bytes(mechanism),
    )


def ceiling(n_classes: int, epsilon: float) -> float:
    """Return e^eps/K, at most 1: what no guess from one code is right more often."""
    return min(1.0, math.exp(min(epsilon, 700.0)) / n_classes)


def signal(mechanism: Any) -> float:
    """Return (p - q)^2 / Var(Z_c - Z_j) by the law: c the label, j another one.

    The mean of n codes tells c from j by sqrt(n signal) standard deviations.
    """
    return float(1 / mechanism.pair_variance())


def measured_signal(
    mechanism: LabelMechanism, draws: int, entropy: Entropy
) -> tuple[float, float]:
    """Return what `signal` is in ``draws`` >= 40 decoded codes, and its standard error.

    From twenty parts of them.
    """
    n = validate.at_least(2 * _PARTS, draws=draws)
    labels = np.arange(n, dtype=np.int64) % mechanism.n_classes
    decoded = mechanism.decode(mechanism.randomize(labels, entropy))
    gaps = _gaps(decoded, labels)
    parts = np.array([_ratio(part) for part in np.array_split(gaps, _PARTS)])
    return _ratio(gaps), float(parts.std(ddof=1) / math.sqrt(_PARTS))


def _gaps(decoded: FloatArray, labels: Labels) -> FloatArray:
    """Return each label's number less that of another one, all others in turn."""
    n_classes = decoded.shape[1]
    away = 1 + np.arange(len(labels)) // n_classes % (n_classes - 1)
    rows, others = np.arange(len(labels)), (labels + away) % n_classes
    return np.asarray(decoded[rows, labels] - decoded[rows, others])


def _ratio(gaps: FloatArray) -> float:
    return float(gaps.mean() ** 2 / gaps.var(ddof=1)) if gaps.var() else math.inf


@singledispatch
def retention(mechanism: LabelMechanism) -> float:
    """Return how often the likeliest class of one code is the label: see `Efficiency`.

    By its law, of which all outputs are listed where there is no formula; too many of
    them are a UserError.
    """
    outputs = mechanism.outputs()
    likely = mechanism.likelihood(outputs) == 1
    chances = mechanism.probabilities(np.arange(mechanism.n_classes))
    right = likely / np.count_nonzero(likely, axis=1)[:, None]
    return float((chances * right.T).sum() / mechanism.n_classes)


@retention.register
def _of_sets(mechanism: SubsetSelection) -> float:
    return float(mechanism.p / mechanism.omega)


@retention.register(UnarySymmetric)
@retention.register(UnaryOptimised)
def _of_bits(mechanism: Any) -> float:
    """Return the chance of the label among the ones, or among all where none is 1."""
    p, q, k = float(mechanism.p), float(mechanism.q), mechanism.n_classes
    some = p * -math.expm1(k * math.log1p(-q)) / (k * q)
    return float(some + (1 - p) * (1 - q) ** (k - 1) / k)


@retention.register
def _of_noise(mechanism: Alibi) -> float:
    """Sum over what the label's number can be within [0, 1]: others are not above."""
    other, k = within(mechanism.noise.rate, ONE), mechanism.n_classes
    reached = np.append(0.0, np.cumsum(other))
    among = (reached[1:] ** k - reached[:-1] ** k) / (k * np.maximum(other, 1e-300))
    return float((other[::-1] * among).sum())


class SoftLabels(NamedTuple):
    """What soft labels of `alibi` say, one of them and the mean of k.

    ``own`` and ``other`` are the mean weights (29) of the label and of another class,
    ``bound`` is the mean of (30) on ``own``, and ``right`` how often the mean of k soft
    labels of one class is largest there: (30) does not bound that.
    """

    own: float
    other: float
    bound: float
    k: int
    right: float


def soft_labels(
    n_classes: int, epsilon: float, k: int = 200, means: int = 50, seed: int = 0
) -> SoftLabels:
    """Return what ``means`` times ``k`` drawn soft labels of one class say."""
    mechanism = Alibi(epsilon=epsilon, n_classes=n_classes)
    each = validate.at_least(1, k=k)
    labels = np.zeros(each * validate.at_least(1, means=means))
    outputs = mechanism.randomize(labels, SeededEntropy(seed))
    soft = mechanism.soft(outputs)
    above = np.count_nonzero(outputs[:, 1:] >= outputs[:, :1], axis=1)
    averaged = soft.reshape(means, each, n_classes).mean(axis=1)
    return SoftLabels(
        own=float(soft[:, 0].mean()),
        other=float(soft[:, 1:].mean()),
        bound=float((1 / np.maximum(above, 1)).mean()),
        k=each,
        right=float((averaged.argmax(axis=1) == 0).mean()),
    )
