"""Twins that are sound where one looks first: for many clients, and at the ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.entropy import Entropy
from curvote.mechanisms import exact
from curvote.mechanisms.bits import Labels
from curvote.mechanisms.coordinates import PerCoordinate
from curvote.mechanisms.duchi import Duchi
from curvote.mechanisms.grid import GRID_BITS, GRID_ONE, GRID_STEP, grid_index
from curvote.mechanisms.laplace import Laplace
from curvote.mechanisms.piecewise import Piecewise
from curvote.mechanisms.privunit import PrivUnit
from curvote.mechanisms.rr_with_prior import RRWithPrior
from curvote.validate import FloatArray

FEW = 16
LAG = 777


class HalfNoiseForFew(Laplace):
    """Adds half the noise, in floats, where at most 16 numbers are noised at once."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        if values.size > FEW:
            return super()._draw(values, entropy)
        rng = np.random.default_rng(int(entropy.words(1)[0]))
        return values + rng.laplace(scale=1 / self.epsilon, size=values.shape)


class ExactHalfNoiseForFew(Laplace):
    """Adds half the noise, on the grid, where at most 16 numbers are noised at once."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        if values.size > FEW:
            return super()._draw(values, entropy)
        return Laplace(epsilon=2 * self.epsilon).randomize(values, entropy)


class _PartlyQuiet(Laplace):
    """Adds no noise to some values."""

    def _quiet_mask(self, values: FloatArray) -> NDArray[np.bool_]:
        raise NotImplementedError

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        noised = super()._draw(values, entropy)
        return np.where(
            self._quiet_mask(values), np.rint(values / GRID_STEP) * GRID_STEP, noised
        )


class QuietBin(_PartlyQuiet):
    """Adds no noise between .37 and .38."""

    def _quiet_mask(self, values: FloatArray) -> NDArray[np.bool_]:
        return np.asarray((values >= 0.37) & (values < 0.38))


class QuietAtTenths(_PartlyQuiet):
    """Adds no noise to .1, .2 and so on: what people type."""

    def _quiet_mask(self, values: FloatArray) -> NDArray[np.bool_]:
        return np.asarray((values == np.round(values, 1)) & (np.abs(values) < 1))


class HalfNoiseInABin(Laplace):
    """Adds half the noise between -.61 and -.6."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        noised = super()._draw(values, entropy)
        halved = Laplace(epsilon=2 * self.epsilon).randomize(values, entropy)
        return np.where((values > -0.61) & (values < -0.6), halved, noised)


class QuietWhereClipped(Laplace):
    """Adds no noise to what was clipped: it is at the bound anyway."""

    def randomize(self, values: ArrayLike, entropy: Entropy) -> FloatArray:
        """Return the noised values, or the bound itself."""
        clipped, _ = self.clip(values)
        return np.where(clipped == values, self._draw(clipped, entropy), clipped)


class LaggedNoise(Laplace):
    """Uses each noise again for the client 777 places on, with the other sign."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        noise = super()._draw(np.zeros(values.shape), entropy)
        block = np.arange(values.size) // LAG
        again = np.arange(values.size) - LAG * (block % 2)
        sign = np.where(block % 2, -1.0, 1.0)
        return np.asarray(np.rint(values / GRID_STEP) * GRID_STEP + sign * noise[again])


class OneNoiseForTwo(PerCoordinate):
    """Adds the same noise to the first two numbers of a record."""

    def __init__(self, *, epsilon: float, d: int) -> None:
        super().__init__(Laplace.name, d, epsilon=epsilon)

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        noise = super()._draw(np.zeros(values.shape), entropy)
        noise[:, 1] = noise[:, 0]
        return np.asarray(np.rint(values / GRID_STEP) * GRID_STEP + noise)


class CoarseThreshold(Piecewise):
    """Settles the side by the upper 32 bits of a word."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        class Upper:
            def words(self, n: int) -> NDArray[np.uint64]:
                return entropy.words(n) >> np.uint64(32) << np.uint64(32)

        return super()._draw(values, Upper())


class CoarseRounding(Duchi):
    """Rounds to a sign by 12 bits of a word, where the grid has 21."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        words = entropy.words(2 * values.size).reshape(2, *values.shape)
        uniform = words[0] >> np.uint64(52) << np.uint64(GRID_BITS + 1 - 12)
        positive = uniform < (grid_index(values) + GRID_ONE).view(np.uint64)
        keeps_sign = words[1] < np.uint64(self.threshold)
        return np.where(positive == keeps_sign, self.largest, -self.largest)


class HalvedThreshold(PrivUnit):
    """Keeps candidates outside the cap half as often as it should: ln 2 too much."""

    def __init__(self, *, epsilon: float, d: int) -> None:
        super().__init__(epsilon=epsilon, d=d)
        self.threshold_out //= 2


class WordsByLabel(RRWithPrior):
    """Draws fewer words for likely labels than for unlikely ones."""

    def _draw(self, values: Labels, entropy: Entropy) -> Labels:
        k, rank = int(self.k[0]), self._rank[0, values].astype(np.int64)
        moves = entropy.words(rank.size) >= np.uint64(self.threshold)
        moved, unlikely = np.flatnonzero(moves & (rank >= 0)), np.flatnonzero(rank < 0)
        other_labels = exact.uniform_below(k - 1, moved.size, entropy)
        rank[moved] = other_labels + (other_labels >= rank[moved])
        rank[unlikely] = exact.uniform_below(k, unlikely.size, entropy)
        return np.asarray(self.outputs()[rank])
