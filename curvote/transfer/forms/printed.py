"""Form `printed`: the kernel release as paper 002 prints it; for studies, not private.

Each bandwidth is noised by equation (16) for epsilon / |H| and delta / |H|, as if one
record moved the sum by 1. By the own rate it moves it by sqrt 2, and from an epsilon of
about 9 on the equation is too little noise even for 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from curvote.mechanisms.discrete_gaussian import DiscreteGaussian
from curvote.mechanisms.gaussian_noise import GaussianNoise
from curvote.privacy import Budget
from curvote.transfer.forms.kernel import Kernel

if TYPE_CHECKING:
    from curvote.transfer.task import Task


class PrintedNoise(GaussianNoise):
    """Noise of sensitivity sqrt(2 ln(2/delta)) / epsilon: equation (9)."""

    def __post_init__(self) -> None:
        scale = math.sqrt(2 * math.log(2 / self.delta)) / self.epsilon
        sigma = self.sensitivity * scale
        object.__setattr__(self, "law", DiscreteGaussian(0.5 / sigma**2))


class Printed(Kernel):
    """The centred sum with the published noise."""

    name = "printed"
    study = True

    def parts(self, task: Task) -> float:
        """Return |H|: a bandwidth has that part of epsilon."""
        return float(len(task.params["bandwidths"]))

    def noise(self, task: Task, budget: Budget) -> GaussianNoise:
        """Return the noise of (16)."""
        parts = self.parts(task)
        return PrintedNoise(
            self.unit(task), budget.epsilon / parts, budget.delta / parts
        )
