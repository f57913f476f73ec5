"""Piecewise family: mechanisms with one window of likelier points, and hybrid."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.entropy import Entropy
from curvote.mechanisms import exact
from curvote.mechanisms.base import ScalarMechanism
from curvote.mechanisms.exact import WORDS
from curvote.mechanisms.grid import grid_index
from curvote.validate import FloatArray

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Window:
    """A law on whole numbers ``first..last`` with a window of 2 ``half`` + 1.

    The window's points share ``threshold`` of 2^64 words evenly, the other points the
    rest. Only the window's place depends on the input; it stays within the range.
    """

    epsilon: float
    first: int
    last: int
    half: int

    @cached_property
    def size(self) -> int:
        """The number of points n."""
        return self.last - self.first + 1

    @cached_property
    def width(self) -> int:
        """The number of points W in the window."""
        return 2 * self.half + 1

    @cached_property
    def threshold(self) -> int:
        """The number T of words, out of 2^64, that select the window."""
        outside = self.size - self.width
        return exact.logistic_threshold(self.epsilon, self.width, outside)

    @cached_property
    def ratio(self) -> Fraction:
        """The likelihood ratio of a point inside to one outside."""
        rest = WORDS - self.threshold
        return Fraction(self.threshold * (self.size - self.width), rest * self.width)

    @cached_property
    def window_weight(self) -> float:
        """The mixture weight of the uniform law on the window."""
        above = self.threshold * self.size - (self.width << exact.WORD_BITS)
        return above / ((self.size - self.width) << exact.WORD_BITS)

    def window_middles(self, centres: Indices) -> Indices:
        """Return the window's middle for each centre, moved into the range."""
        return np.clip(centres, self.first + self.half, self.last - self.half)

    def holds(self, centres: Indices, points: NDArray[Any]) -> NDArray[np.bool_]:
        """Return whether each point is in the window of its centre."""
        return np.asarray(np.abs(points - self.window_middles(centres)) <= self.half)

    def sample(self, centres: Indices, entropy: Entropy) -> Indices:
        """Return one draw for each centre, (n,): a side by its word, then uniform."""
        points = self.window_middles(centres) - self.half
        inside = entropy.words(centres.size) < np.uint64(self.threshold)
        within, without = np.flatnonzero(inside), np.flatnonzero(~inside)
        starts = points[without]
        points[within] += exact.uniform_below(self.width, within.size, entropy)
        outside_points = exact.uniform_below(
            self.size - self.width, without.size, entropy
        )
        outside_points += self.first
        outside_points += self.width * (outside_points >= starts)
        points[without] = outside_points
        return points

    def mean(self, centres: Indices) -> FloatArray:
        """Return the mean for each centre."""
        middle = (self.first + self.last) / 2
        return np.asarray(
            middle + self.window_weight * (self.window_middles(centres) - middle)
        )

    def variance(self, centres: Indices) -> FloatArray:
        """Return the variance: those of the two uniform laws, and between them."""
        middle, g = (self.first + self.last) / 2, self.window_weight
        within = (g * (self.width**2 - 1) + (1 - g) * (self.size**2 - 1)) / 12
        return np.asarray(
            within + g * (1 - g) * (self.window_middles(centres) - middle) ** 2
        )

    def cdf(self, centres: Indices, points: FloatArray) -> FloatArray:
        """Return P(draw <= point) for whole numbers ``points``."""
        starts = self.window_middles(centres) - self.half
        every = np.clip(points - self.first + 1, 0, self.size) / self.size
        inside = np.clip(points - starts + 1, 0, self.width) / self.width
        return np.asarray(
            self.window_weight * inside + (1 - self.window_weight) * every
        )


class WindowMechanism(ScalarMechanism):
    """A scalar mechanism whose output is ``scale`` times a draw from a ``window``.

    The value is rounded to the grid of step 2^-20 (halves to even) first; that grid
    index, moved by ``shift``, is the window's centre. So every input has the same
    outputs, and the loss is that of one point inside against outside.
    """

    window: Window
    scale: float
    shift: ClassVar[int] = 0

    def _window_centres(self, x: ArrayLike) -> Indices:
        clipped, _ = self.clip(x)
        return grid_index(clipped) + self.shift

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        centres = grid_index(values).ravel() + self.shift
        outputs = self.window.sample(centres, entropy) * self.scale
        return np.asarray(outputs.reshape(values.shape))

    def _clip_outputs(self, at: ArrayLike) -> FloatArray:
        """Return outputs clipped to the range and one step below it."""
        lowest = (self.window.first - 1) * self.scale
        highest = self.window.last * self.scale
        return np.clip(np.asarray(at, dtype=np.float64), lowest, highest)

    def _output_index(self, at: ArrayLike) -> FloatArray:
        return np.asarray(np.rint(self._clip_outputs(at) / self.scale))

    def possible_mask(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each output whether it is a point of the range."""
        index = self._output_index(outputs)
        return np.asarray(
            (index * self.scale == outputs) & (index >= self.window.first)
        )

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the exact mean of the output for each input."""
        return np.asarray(self.window.mean(self._window_centres(x)) * self.scale)

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the exact variance of the output for each input."""
        return np.asarray(self.window.variance(self._window_centres(x)) * self.scale**2)

    def cdf(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return the exact P(output <= at) for each input."""
        reached = self._clip_outputs(at)
        points = np.floor(reached / self.scale)
        # The quotient is rounded: the outputs themselves say which is the last reached.
        points += (points + 1) * self.scale <= reached
        points -= points * self.scale > reached
        return self.window.cdf(self._window_centres(x), points)

    def point_probability(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return P(output = at) for each input."""
        window = self.window
        inside = window.threshold / (WORDS * window.width)
        rest = (WORDS - window.threshold) / (WORDS * (window.size - window.width))
        inside_window = window.holds(self._window_centres(x), self._output_index(at))
        return np.where(
            self.possible_mask(np.asarray(at)), np.where(inside_window, inside, rest), 0
        )

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        inside = self.window.holds(self._window_centres(x), self._output_index(at))
        return np.asarray(inside * self.worst_log_ratio())

    def worst_ratio(self) -> Fraction:
        """Return the exact likelihood ratio of a point inside to one outside."""
        return self.window.ratio
