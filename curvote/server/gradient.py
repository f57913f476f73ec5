"""Gradient descent on noised, clipped gradients, one of each client.

Bassily, Smith and Thakurta (2014) descend so where a server is trusted, and Duchi,
Jordan and Wainwright (2018, section 5.2) where none is: every client answers once, at
the coefficients that its batch was told. The answer is the mean of the later iterates
(Polyak and Juditsky 1992; Rakhlin, Shamir and Sridharan 2012).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from curvote.mechanisms.privunit import privunit_variance
from curvote.representation.gradient import Gradients

Array = NDArray[np.float64]

# How much the energy of noise counts beside that of a clipped gradient of length C: as
# much as if the mean gradient had half of that length.
NOISE_WEIGHT = 4.0
# The part of the iterates that is averaged.
AVERAGED_PART = 0.5


def gradient_step(
    gradients: Gradients, reports: Array, epsilon: float, rate: float
) -> Gradients:
    """Return the gradients at the coefficients of the next round.

    ``reports`` (n, size) are those of one round; none leave the coefficients where they
    are. x has p numbers and a length about 1, so a step is ``rate`` mean gradients
    times the number of coefficients, shortened by the noise that is known to be there.
    """
    if not len(reports):
        return gradients
    count = gradients.coef.size
    noise = count * privunit_variance(gradients.size, epsilon) / len(reports)
    step = rate * count / np.sqrt(1 + NOISE_WEIGHT * noise)
    mean = gradients.gradient(reports.mean(axis=0))
    return replace(gradients, coef=gradients.coef + step * mean)


def average_iterates(iterates: Sequence[Gradients]) -> Gradients:
    """Return the mean of the last iterates, ``AVERAGED_PART`` of them."""
    first = min(int(len(iterates) * (1 - AVERAGED_PART)), len(iterates) - 1)
    coef = np.mean([iterate.coef for iterate in iterates[first:]], axis=0)
    return replace(iterates[-1], coef=coef)
