"""Piecewise family: mechanisms with one window of likelier points, and hybrid."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base.entropy import Entropy
from curvote.base.validate import FloatArray
from curvote.mechanisms import base, exact
from curvote.mechanisms.duchi import Duchi
from curvote.mechanisms.exact import GRID_ONE, GRID_STEP, WORDS, grid_index

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
        outside = self.size - self.width
        outside_points = exact.uniform_below(outside, without.size, entropy)
        outside_points += self.first
        outside_points += self.width * (outside_points >= starts)
        points[without] = outside_points
        return points

    def mean(self, centres: Indices) -> FloatArray:
        """Return the mean for each centre."""
        middle = (self.first + self.last) / 2
        off = self.window_middles(centres) - middle
        return np.asarray(middle + self.window_weight * off)

    def variance(self, centres: Indices) -> FloatArray:
        """Return the variance: those of the two uniform laws, and between them."""
        middle, g = (self.first + self.last) / 2, self.window_weight
        within = (g * (self.width**2 - 1) + (1 - g) * (self.size**2 - 1)) / 12
        off = self.window_middles(centres) - middle
        return np.asarray(within + g * (1 - g) * off**2)

    def cdf(self, centres: Indices, points: FloatArray) -> FloatArray:
        """Return P(draw <= point) for whole numbers ``points``."""
        starts = self.window_middles(centres) - self.half
        every = np.clip(points - self.first + 1, 0, self.size) / self.size
        inside = np.clip(points - starts + 1, 0, self.width) / self.width
        g = self.window_weight
        return np.asarray(g * inside + (1 - g) * every)


class WindowMechanism(base.ScalarMechanism):
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
        exists = index * self.scale == outputs
        return np.asarray(exists & (index >= self.window.first))

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
        share = np.where(inside_window, inside, rest)
        return np.where(self.possible_mask(np.asarray(at)), share, 0)

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        inside = self.window.holds(self._window_centres(x), self._output_index(at))
        return np.asarray(inside * self.worst_log_ratio())

    def worst_ratio(self) -> Fraction:
        """Return the exact likelihood ratio of a point inside to one outside."""
        return self.window.ratio


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
        half = round(GRID_ONE * shrink / (1 + shrink) / 2)
        self.window = Window(self.epsilon, 0, GRID_ONE, half)


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
        twice = 2 * math.expm1(-self.epsilon) ** 2
        half = round(GRID_ONE * _width_factor(self.epsilon) / twice)
        self.window = Window(self.epsilon, 0, GRID_ONE, half)


def _width_factor(epsilon: float) -> float:
    """Return e^-epsilon (epsilon - 1 + e^-epsilon).

    Both widths have it above the line, once e^epsilon is divided out: no overflow.
    """
    return math.exp(-epsilon) * (epsilon + math.expm1(-epsilon))


# Below it Duchi et al. alone has the smaller worst variance (Wang et al., eq. 6): the
# logarithm of the root of a cubic.
LEAST_PIECEWISE = 0.6093524930273093


class Hybrid(base.ScalarMechanism):
    """Draws from ``piecewise`` with probability alpha, else from ``duchi``.

    From Wang et al. (2019, section III-C): alpha = 1 - e^(-epsilon/2) above epsilon
    0.61, where the variance is then the same for every input, else 0. The coin is a
    64-bit word against an integer that no input changes. Each output belongs to one of
    the two, so the loss is the larger of theirs; were +-C ever a point of both grids, a
    mixture of two ratios there would be no larger.
    """

    name = "hybrid"
    unbiased = True

    def __init__(self, *, epsilon: float) -> None:
        super().__init__(epsilon=epsilon)
        self.piecewise, self.duchi = Piecewise(epsilon=epsilon), Duchi(epsilon=epsilon)
        wanted = -math.expm1(-self.epsilon / 2) if epsilon > LEAST_PIECEWISE else 0
        self.coin = min(int(wanted * WORDS), WORDS - 1)
        self.shares = self.coin / WORDS, (WORDS - self.coin) / WORDS

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        first = entropy.words(values.size).reshape(values.shape) < np.uint64(self.coin)
        outputs = np.empty(values.shape)
        outputs[first] = self.piecewise.randomize(values[first], entropy)
        outputs[~first] = self.duchi.randomize(values[~first], entropy)
        return outputs

    def _weigh_by_shares(self, piecewise: FloatArray, duchi: FloatArray) -> FloatArray:
        return np.asarray(self.shares[0] * piecewise + self.shares[1] * duchi)

    def possible_mask(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each output whether a mechanism in use can give it."""
        mask = self.duchi.possible_mask(outputs)
        return mask | self.piecewise.possible_mask(outputs) if self.coin else mask

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the grid point of each input, at most 2^-21 from it."""
        return self._weigh_by_shares(self.piecewise.mean(x), self.duchi.mean(x))

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the mixture's variance: both parts have the same mean."""
        return self._weigh_by_shares(self.piecewise.variance(x), self.duchi.variance(x))

    def cdf(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return the exact P(output <= at) for each input."""
        return self._weigh_by_shares(self.piecewise.cdf(x, at), self.duchi.cdf(x, at))

    def law(self, x: ArrayLike) -> base.Mixture:
        """Return one term: atoms of ``duchi``, and ``piecewise`` as the rest."""
        values = np.asarray(x, dtype=np.float64)
        rest, extremes = self.shares

        def inner(inputs: FloatArray, at: FloatArray) -> FloatArray:
            return rest * self.piecewise.cdf(inputs, at)

        chances = extremes * self.duchi.probabilities(values)
        two = base.atomic_law(self.duchi.outputs, chances)
        return base.product_law(
            base.Law(two.points, two.masses, inner, values[:, None])
        )

    def point_probability(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return P(output = at) for each input."""
        hit = self.duchi.outputs == np.asarray(at)[..., None]
        extremes = np.sum(self.duchi.probabilities(x) * hit, axis=-1)
        return self._weigh_by_shares(self.piecewise.point_probability(x, at), extremes)

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        return np.asarray(np.log(self.point_probability(x, at)))

    def worst_ratio(self) -> Fraction:
        """Return the larger ratio of the two mechanisms in use."""
        extremes = self.duchi.worst_ratio()
        return max(self.piecewise.worst_ratio(), extremes) if self.coin else extremes
