"""Noise on both features of a record: by the paper's laws, and by our mechanisms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from curvote.mechanisms import make
from curvote.mechanisms.law import Mixture, product
from curvote.reproduce.qcu.laws import DELTA, Printed, counted
from curvote.reproduce.qcu.studies import BOUNDS, UNIT
from curvote.utility.channel import Channel, Part
from curvote.utility.engines.base import Draws, Surface
from curvote.validate import FloatArray

MECHANISMS: Final = ("pm_01", "sw_01", "k_rr", "exponential", "laplace", "gaussian")
PARAMS: Final[dict[str, dict[str, Any]]] = {
    "k_rr": {"n_classes": 101},
    "exponential": {"size": 101},
    "gaussian": {"d": 1, "delta": DELTA},
}


@dataclass(frozen=True)
class Stated(Channel):
    """A channel whose law is stated and not that of mechanisms: it cannot be drawn."""

    stated: Callable[[FloatArray], Mixture] = field(kw_only=True)

    def law(self, values: FloatArray) -> Mixture:
        """Return the stated law of what the model sees for ``values`` (n, s)."""
        return self.stated(values)


def as_printed(law: Printed) -> Stated:
    """Return the channel that noises each of two features by a law of the paper."""

    def stated(values: FloatArray) -> Mixture:
        return product(*(law.law(column) for column in values.T))

    return Stated((), BOUNDS, BOUNDS.mean(axis=1), stated=stated)


def ours(name: str, epsilon: float, size: int = 2) -> Channel:
    """Return the channel of our mechanism, ``epsilon`` for each of so many features."""
    made = make(name, epsilon=epsilon, **PARAMS.get(name, {}))
    bounds = np.tile(UNIT, (size, 1))
    parts = [Part(made, (place,)) for place in range(size)]
    return Channel(parts, bounds, bounds.mean(axis=1))


def agreement(surface: Surface, channel: Channel) -> FloatArray:
    """Return how often each record's answer survives the channel, (n,)."""
    share = surface.answers(channel, Draws()).share
    return np.asarray(share[np.arange(len(share)), surface.clean])


def printed_agreement(
    surface: Surface, values: FloatArray, law: Printed, *, redraws: bool = True
) -> FloatArray:
    """Return the same as the paper counts it; ``redraws`` are wrong answers.

    ``values`` (n, 2) are the sensitive ones.
    """
    found = agreement(surface, as_printed(law))
    if not redraws:
        return found
    return found * counted(np.column_stack([law.inside(column) for column in values.T]))
