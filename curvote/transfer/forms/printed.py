"""Form `printed`: the kernel release as paper 002 prints it; for studies, not private.

Each bandwidth is noised by equation (16) for epsilon / |H| and delta / |H|, as if one
record moved the sum by 1. By the own rate it moves it by sqrt 2, and from an epsilon of
about 9 on the equation is too little noise even for 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from curvote.mechanisms.discrete_gaussian import DiscreteGaussian
from curvote.mechanisms.gaussian_noise import GaussianNoise
from curvote.privacy import Budget
from curvote.transfer.forms.kernel import Kernel

if TYPE_CHECKING:
    from curvote.transfer.task import Task


@dataclass(frozen=True)
class PrintedNoise(GaussianNoise):
    """Gaussian noise of the published standard deviation: (9), (16).

    ``parts`` is |H|. ``sensitivity`` is the true one, so that what is told of the noise
    is what it delivers.
    """

    unit: float
    parts: float = 1.0

    def __post_init__(self) -> None:
        delta, epsilon = self.delta / self.parts, self.epsilon / self.parts
        sigma = self.unit * math.sqrt(2 * math.log(2 / delta)) / epsilon
        object.__setattr__(self, "law", DiscreteGaussian(0.5 / sigma**2))


class Printed(Kernel):
    """Kernel form with the published noise, for studies only."""

    name = "printed"
    study = True

    def parts(self, task: Task) -> float:
        """Return |H|: each bandwidth has that part of epsilon."""
        return float(len(task.params["bandwidths"]))

    def noise(self, task: Task, budget: Budget) -> GaussianNoise:
        """Return the noise of equation (16)."""
        noise_args = budget.epsilon, budget.delta, self.unit(task), self.parts(task)
        return PrintedNoise(self.sensitivity(task), *noise_args)
