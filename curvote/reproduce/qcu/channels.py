"""Channels on both features of a record: the paper's laws, and our mechanisms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from curvote.mechanisms import make
from curvote.mechanisms.law import Mixture, product_law
from curvote.reproduce.qcu.laws import DELTA, PaperLaw, paper_share
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
class StatedChannel(Channel):
    """A channel with a stated law instead of mechanisms; it cannot be drawn."""

    stated_law: Callable[[FloatArray], Mixture] = field(kw_only=True)

    def law(self, values: FloatArray) -> Mixture:
        """Return the stated law of what the model sees for ``values`` (n, s)."""
        return self.stated_law(values)


def paper_channel(law: PaperLaw) -> StatedChannel:
    """Return the channel that noises two features by a paper's law."""

    def mixture(values: FloatArray) -> Mixture:
        return product_law(*(law.law(column) for column in values.T))

    return StatedChannel((), BOUNDS, BOUNDS.mean(axis=1), stated_law=mixture)


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
    """Return the agreement as the paper counts it.

    ``values`` (n, 2) are the sensitive ones.
    """
    shares = agreement(surface, paper_channel(law))
    if not redraws:
        return shares
    return shares * paper_share(
        np.column_stack([law.inside(column) for column in values.T])
    )
