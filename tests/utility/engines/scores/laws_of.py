"""Channels and laws for the tests of classifiers by scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from curvote.base.entropy import SeededEntropy
from curvote.mechanisms.base import Mixture, continuous_law, product_law
from curvote.systems.utility.method.engines.base import Draws, make_channel
from tests.noise import SEED

# Every mechanism that has a law for two features, with what it needs.
MECHANISMS: dict[str, dict[str, Any]] = {
    "laplace": {},
    "pm_01": {},
    "sw_01": {},
    "piecewise": {},
    "square_wave": {},
    "hybrid": {},
    "duchi": {},
    "exponential": {},
    "k_rr": {},
    "hadamard": {"n_classes": 5},
    "joint_box": {},
    "duchi_vector": {},
    "sampled": {"k": 1},
    "gaussian": {"delta": 1e-3},
}


@dataclass(frozen=True)
class Fixed:
    """A channel whose laws are given, for the first records."""

    mixture: Mixture

    def law(self, values):
        return self.mixture.select(slice(0, len(values)))


def normal(means, deviations):
    """Return independent normal laws: (n, s) means, (s,) deviations."""
    pairs = zip(np.transpose(means), deviations, strict=True)
    return product_law(
        *(
            continuous_law(
                mean[:, None], lambda x, at, sd=sd: special.ndtr((at - x) / sd)
            )
            for mean, sd in pairs
        )
    )


def answers(surface, mechanism, clip=True, epsilon=3.0):
    """Return the surface's answers under a mechanism, and its channel."""
    bounds = surface.question.bounds
    channel = make_channel(
        mechanism,
        epsilon=epsilon,
        bounds=bounds,
        fill_value=bounds.mean(axis=1),
        clip=clip,
        **MECHANISMS[mechanism],
    )
    return surface.answers(channel, Draws()), channel


def errors(surface, given, channel, draws):
    """Return by how many standard errors draws lie outside the brackets, (n, K).

    The variance is at least that of one hit.
    """
    question, n = surface.question, len(surface.clean)
    seen = channel.draw(np.repeat(question.values, draws, axis=0), SeededEntropy(SEED))
    rows = np.repeat(question.records, draws, axis=0)
    rows[:, list(question.sensitive)] = seen
    told = question.model.predict(rows).reshape(n, draws)
    classes = getattr(question.model, "classes_", range(surface.n_classes))
    share = np.stack([(told == one).mean(axis=1) for one in classes], axis=1)
    spread = np.sqrt(np.maximum(given.share * (1 - given.share), 1 / draws) / draws)
    return np.maximum(given.lower - share, share - given.upper).clip(min=0) / spread
