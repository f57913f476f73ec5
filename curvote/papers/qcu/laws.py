"""Noise laws of QCU on [0, 1], as drawn in the paper: to compare, never to protect.

Shipped mechanisms stand in `curvote.mechanisms`. These differ from them on purpose.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from scipy.special import ndtr, ndtri

from curvote.base.validate import FloatArray
from curvote.mechanisms import base
from curvote.mechanisms.factory import make
from curvote.papers.figure import looks
from curvote.systems.utility.method.engines.base import Channel, Draws, Part, Surface

DELTA: Final = 0.052  # of the Gaussian, for each feature
UNIT: Final = np.array([0.0, 1.0])
BOUNDS: Final = np.tile(UNIT, (2, 1))
_SAME: Final = 1e-9  # a level that is the value itself, but for rounding


@dataclass(frozen=True)
class PaperLaw:
    """A law of the paper for values in [0, 1], with outputs in [0, 1].

    ``law`` gives the laws of accepted outputs for values (n,), ``draw`` one accepted
    draw for each. What falls outside is drawn again, and every time counts as a wrong
    answer; ``inside`` is the probability (n,) that a draw is accepted.
    """

    law: Callable[[FloatArray], base.Law]
    draw: Callable[[FloatArray, np.random.Generator], FloatArray]
    inside: Callable[[FloatArray], FloatArray] = lambda x: np.ones(len(x))


def window_shape(name: str, epsilon: float) -> tuple[float, float, float]:
    """Return the density inside of the window and outside, and half its length.

    Of the piecewise mechanism ``pm_01`` (definition 11), or the square wave ``sw_01``
    (definition 12).
    """
    if name == "pm_01":
        high = math.exp(epsilon / 2)
        return high, 1 / high, 1 / (2 * (high + 1))
    ratio = math.exp(epsilon)
    high = (ratio - 1) / epsilon
    half = (ratio * (epsilon - 1) + 1) / (2 * (ratio - 1) ** 2)
    return high, high / ratio, half


def piecewise(high: float, low: float, half: float) -> PaperLaw:
    """Return density ``high`` within ``half`` of x moved into [0, 1], else ``low``."""

    def start(x: FloatArray) -> FloatArray:
        return np.clip(x, half, 1 - half) - half

    def cdf(x: FloatArray, at: FloatArray) -> FloatArray:
        more = (high - low) * np.clip(at - start(x), 0, 2 * half)
        return np.asarray(np.minimum(low * np.clip(at, 0, 1) + more, 1))

    def draw(x: FloatArray, rng: np.random.Generator) -> FloatArray:
        place = rng.random(x.shape)
        likelier = rng.random(x.shape) < 2 * half * (high - low)
        return np.asarray(np.where(likelier, start(x) + 2 * half * place, place))

    return PaperLaw(lambda x: base.continuous_law(x[:, None], cdf, 0.0, 1.0), draw)


# Outputs (n, k) for values (n,), rising in each row, and their probabilities.
LevelTable = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def levels_law(table: LevelTable) -> PaperLaw:
    """Return a law with few outputs."""

    def draw(x: FloatArray, rng: np.random.Generator) -> FloatArray:
        values, which = np.unique(x, return_inverse=True)
        outputs, masses = table(values)
        # The rows one after the other, row i from i to i + 1: one search for all.
        sums = np.arange(len(values))[:, None] + np.cumsum(masses, axis=1)
        sums[:, -1] = np.arange(len(values)) + 1
        positions = np.searchsorted(sums.ravel(), which + rng.random(x.shape), "right")
        return np.asarray(outputs.ravel()[positions])

    return PaperLaw(lambda x: base.atomic_law(*table(x)), draw)


def exponential(rate: float, size: int = 100) -> PaperLaw:
    """Return weights e^(-rate |x - y|) on ``size`` levels y = 0, .01, ...

    x is not rounded. Definition 13 with its sign put right has rate epsilon/2 and
    spends half of epsilon; rate epsilon spends all of it.
    """

    def table(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        levels = np.arange(size) / 100
        weights = np.exp(-rate * np.abs(x[:, None] - levels))
        masses = weights / weights.sum(axis=1, keepdims=True)
        return np.broadcast_to(levels, masses.shape), masses

    return levels_law(table)


def kept_rr(epsilon: float, other_levels: int = 99) -> PaperLaw:
    """Return random response that keeps the value or names another level.

    With probability e^epsilon/(``other_levels`` + e^epsilon). Definition 14 has 100
    others, the curves are drawn with 99. What is kept need not be a level: such an
    output gives the value away, so this is not private.
    """
    return levels_law(lambda x: rr_table(x, epsilon, other_levels))


def rr_table(
    x: FloatArray, epsilon: float, other_levels: int
) -> tuple[FloatArray, FloatArray]:
    """Return the value and the levels in order; its own level has mass 0."""
    levels = np.arange(101) / 100
    other = np.abs(x[:, None] - levels) > _SAME
    keep = 1 / (1 + other_levels * math.exp(-epsilon))
    moved = other * (1 - keep) / other.sum(axis=1, keepdims=True)
    outputs = np.hstack([np.broadcast_to(levels, other.shape), x[:, None]])
    masses = np.hstack([moved, np.full((len(x), 1), keep)])
    order = np.argsort(outputs, axis=1, kind="stable")
    return (
        np.take_along_axis(outputs, order, axis=1),
        np.take_along_axis(masses, order, axis=1),
    )


def redrawn(
    noise: Callable[[FloatArray], FloatArray],
    quantile: Callable[[FloatArray], FloatArray],
) -> PaperLaw:
    """Return noise added to x, drawn again until the sum lies in [0, 1].

    ``noise`` is P(noise <= at), ``quantile`` its inverse.
    """

    def inside(x: FloatArray) -> FloatArray:
        return np.asarray(noise(1 - x) - noise(-x))

    def cdf(x: FloatArray, at: FloatArray) -> FloatArray:
        return np.asarray((noise(np.clip(at, 0, 1) - x) - noise(-x)) / inside(x))

    def draw(x: FloatArray, rng: np.random.Generator) -> FloatArray:
        share = noise(-x) + rng.random(x.shape) * inside(x)
        return np.clip(x + quantile(share), 0, 1)

    return PaperLaw(
        lambda x: base.continuous_law(x[:, None], cdf, 0.0, 1.0), draw, inside
    )


def laplace(epsilon: float) -> PaperLaw:
    """Return the noise of definition 4: scale 1/epsilon on [0, 1]."""

    def noise(at: FloatArray) -> FloatArray:
        tail = np.exp(-epsilon * np.abs(at)) / 2
        return np.asarray(np.where(at < 0, tail, 1 - tail))

    def quantile(share: FloatArray) -> FloatArray:
        size = -np.log(2 * np.minimum(share, 1 - share)) / epsilon
        return np.asarray(np.where(share < 0.5, -size, size))

    return redrawn(noise, quantile)


def gaussian(epsilon: float) -> PaperLaw:
    """Return the extended Gaussian of theorem 4, with `DELTA` for one feature."""
    log = math.log(2 / DELTA)
    root = math.sqrt(log + epsilon) + math.sqrt(log)
    sigma = root / (math.sqrt(2) * epsilon)
    return redrawn(lambda at: ndtr(at / sigma), lambda share: sigma * ndtri(share))


def paper_law(name: str, epsilon: float, *, spent: float = 1.0) -> PaperLaw:
    """Return the law with this name in the published files.

    ``spent`` is the share of epsilon that the exponential one spends.
    """
    laws: dict[str, Callable[[float], PaperLaw]] = {
        "pm_01": lambda epsilon: piecewise(*window_shape(name, epsilon)),
        "sw_01": lambda epsilon: piecewise(*window_shape(name, epsilon)),
        "k_rr": kept_rr,
        "exponential": lambda epsilon: exponential(spent * epsilon),
        "laplace": laplace,
        "gaussian": gaussian,
    }
    return laws[name](epsilon)


def paper_share(inside: FloatArray) -> FloatArray:
    """Return the share (n,) of answers as the paper counts them.

    ``inside`` (n, s): 1/(1 + sum_i (1/p_i - 1)), each feature drawn until it is kept.
    """
    return np.asarray(1 / (1 + (1 / inside - 1).sum(axis=1)))


LOOKS: Final = looks("qcu")
PARAMS: Final[dict[str, dict[str, Any]]] = {
    "k_rr": {"n_classes": 101},
    "exponential": {"size": 101},
    "gaussian": {"d": 1, "delta": DELTA},
}


@dataclass(frozen=True)
class StatedChannel(Channel):
    """A channel with a stated law instead of mechanisms; it cannot be drawn."""

    stated_law: Callable[[FloatArray], base.Mixture] = field(kw_only=True)

    def law(self, values: FloatArray) -> base.Mixture:
        """Return the stated law of what the model sees for ``values`` (n, s)."""
        return self.stated_law(values)


def our_channel(name: str, epsilon: float, size: int = 2) -> Channel:
    """Return the channel of our mechanism, ``epsilon`` for each feature."""
    mechanism = make(name, epsilon=epsilon, **PARAMS.get(name, {}))
    bounds = np.tile(UNIT, (size, 1))
    parts = [Part(mechanism, (place,)) for place in range(size)]
    return Channel(parts, bounds, bounds.mean(axis=1))


def agreement(surface: Surface, channel: Channel) -> FloatArray:
    """Return the probability that each record's answer survives, (n,)."""
    share = surface.answers(channel, Draws()).share
    return np.asarray(share[np.arange(len(share)), surface.clean])


def printed_agreement(
    surface: Surface, values: FloatArray, law: PaperLaw, *, redraws: bool = True
) -> FloatArray:
    """Return the agreement as the paper counts it, with or without its redraws.

    ``values`` (n, 2) are the sensitive ones, which the law noises.
    """

    def mixture(values: FloatArray) -> base.Mixture:
        return base.product_law(*map(law.law, values.T))

    shares = agreement(
        surface, StatedChannel((), BOUNDS, BOUNDS.mean(axis=1), stated_law=mixture)
    )
    if not redraws:
        return shares
    return shares * paper_share(np.column_stack([*map(law.inside, values.T)]))
