"""Piecewise mechanism: unbiased on [-1, 1], and the biased version on [0, 1]."""

from __future__ import annotations

import math

from curvote.mechanisms.grid import GRID_ONE, GRID_STEP
from curvote.mechanisms.window import Window, WindowMechanism


class Piecewise(WindowMechanism):
    """The piecewise mechanism of Wang et al. (2019, algorithm 2), on integers.

    With C = (e^(epsilon/2) + 1)/(e^(epsilon/2) - 1) the paper's output is in [-C, C],
    likelier in a window of length C - 1 around (C + 1)/2 x. Counted in steps of
    (C + 1)/2 2^-20, the centre is the grid index of x, the window's half-width is
    2^20 e^(-epsilon/2), here rounded, and 2^20 more is the end of the range. The step
    2^-20/g makes the mean x's grid point exactly; the variance agrees with the paper's
    to the rounding. Above epsilon 29 the window is one point; the loss is at most
    ln(2^85): 58.9.
    """

    name = "piecewise"
    unbiased = True

    def __init__(self, *, epsilon: float) -> None:
        super().__init__(epsilon=epsilon)
        half = round(GRID_ONE * math.exp(-self.epsilon / 2))
        self.window = Window(self.epsilon, -GRID_ONE - half, GRID_ONE + half, half)
        self.scale = GRID_STEP / self.window.window_weight


class UnitPiecewise(WindowMechanism):
    """The piecewise mechanism from [0, 1] to [0, 1] (Zheng & Hu, definition 11).

    Inside the window [x - C, x + C], pushed into [0, 1] at its ends, the density is
    e^(epsilon/2), else e^(-epsilon/2); C = 1/(2 (e^(epsilon/2) + 1)). On the grid of
    step 2^-20 the window has 2 round(2^20 C) + 1 points. The output is biased.
    """

    name = "pm_01"
    unbiased = False
    unit_scale = True
    low, high = 0.0, 1.0
    scale = GRID_STEP

    def __init__(self, *, epsilon: float) -> None:
        super().__init__(epsilon=epsilon)
        # The same C, times e^(-epsilon/2) above and below: no overflow.
        shrink = math.exp(-self.epsilon / 2)
        self.window = Window(
            self.epsilon, 0, GRID_ONE, round(GRID_ONE * shrink / (1 + shrink) / 2)
        )
