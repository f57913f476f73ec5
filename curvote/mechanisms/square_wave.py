"""Square wave mechanism on [-1, 1], and its version on [0, 1]; both biased."""

from __future__ import annotations

import math

from curvote.mechanisms.grid import GRID_ONE, GRID_STEP
from curvote.mechanisms.window import Window, WindowMechanism


class SquareWave(WindowMechanism):
    """The square wave mechanism of Li et al. (2020, section 5.2), on integers.

    A value x in [-1, 1] is first mapped to v = (x + 1)/2. The output stays on that
    inner scale: it lies in [-b, 1 + b], likelier within b of v, where
    b = (epsilon e^epsilon - e^epsilon + 1)/(2 e^epsilon (e^epsilon - 1 - epsilon)). On
    its grid of step 2^-21 the window has 2 round(2^21 b) + 1 points. It is made for
    estimating distributions: the mean is shrunk towards 1/2.
    """

    name = "square_wave"
    unbiased = False
    unit_scale = True
    scale = GRID_STEP / 2
    shift = GRID_ONE

    def __init__(self, *, epsilon: float) -> None:
        super().__init__(epsilon=epsilon)
        shrink = math.exp(-self.epsilon)
        rest = -math.expm1(-self.epsilon) - self.epsilon * shrink
        half = round(GRID_ONE * _width_factor(self.epsilon) / rest)
        self.window = Window(self.epsilon, -half, 2 * GRID_ONE + half, half)


class UnitSquareWave(WindowMechanism):
    """The square wave mechanism from [0, 1] to [0, 1] (Zheng & Hu, definition 12).

    Inside the window [x - C, x + C], pushed into [0, 1] at its ends, the density is
    p = (e^epsilon - 1)/epsilon, else p e^-epsilon;
    C = (e^epsilon (epsilon - 1) + 1)/(2 (e^epsilon - 1)^2). On the grid of step 2^-20
    the window has 2 round(2^20 C) + 1 points. The output is biased.
    """

    name = "sw_01"
    unbiased = False
    unit_scale = True
    low, high = 0.0, 1.0
    scale = GRID_STEP

    def __init__(self, *, epsilon: float) -> None:
        super().__init__(epsilon=epsilon)
        half = round(
            GRID_ONE
            * _width_factor(self.epsilon)
            / (2 * math.expm1(-self.epsilon) ** 2)
        )
        self.window = Window(self.epsilon, 0, GRID_ONE, half)


def _width_factor(epsilon: float) -> float:
    """Return e^-epsilon (epsilon - 1 + e^-epsilon).

    Both widths have it above the line, once e^epsilon is divided out: no overflow.
    """
    return math.exp(-epsilon) * (epsilon + math.expm1(-epsilon))
