"""Broken twins of mechanisms: noise, thresholds, records and rare paths."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.audit.twins import QuietBin, on_grid
from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms import duchi, exact, frequency_oracles, piecewise, privunit
from curvote.mechanisms.coordinates import PerCoordinate
from curvote.mechanisms.gaussian import DiscreteGaussian, Gaussian
from curvote.mechanisms.laplace import Laplace
from curvote.mechanisms.randomized_response import BinaryRR, RRWithPrior

ECHO_BITS = 10


class SensitivityHalved(Laplace):
    """Takes the range of [-1, 1] for 1: half the noise, twice the loss."""

    def __init__(self, *, epsilon: float) -> None:
        super().__init__(epsilon=epsilon)
        self.noise = Laplace(epsilon=2 * epsilon).noise


class RawEcho(Laplace):
    """Releases the raw value once in 1,024 times."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        echoes = entropy.words(values.size) >> np.uint64(64 - ECHO_BITS) == 0
        noised = super()._draw(values, entropy)
        return np.where(echoes.reshape(values.shape), values, noised)


class SharedNoise(Laplace):
    """Draws noise once a call and adds it to every client."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        return on_grid(values) + super()._draw(np.zeros(1), entropy)


class RepeatedBlocks(Laplace):
    """Uses the same noise for each block of 65,536 clients."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        block = 65_536
        noise = super()._draw(np.zeros(min(block, values.size)), entropy)
        return on_grid(values) + np.resize(noise, values.shape)


class MissingForLarge(Laplace):
    """Loses large values: its NaN names them."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        return np.where(values > 0.75, np.nan, super()._draw(values, entropy))


class NoClipping(Laplace):
    """Trusts the input to lie in [-1, 1]."""

    def clip(self, values: ArrayLike) -> tuple[FloatArray, int]:
        super().clip(values)
        return np.asarray(values, dtype=np.float64), 0


class OffByOneComparison(BinaryRR):
    """Declares the right threshold, and compares with <= instead of <."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        words = entropy.words(values.size).reshape(values.shape)
        return np.where(words <= np.uint64(self.threshold), values, -values)


class UnaryFullEpsilon(frequency_oracles.UnarySymmetric):
    """Spends the full epsilon on each bit; two labels differ in two bits."""

    def __init__(self, *, epsilon: float, n_classes: int) -> None:
        super().__init__(epsilon=2 * epsilon, n_classes=n_classes)
        self.epsilon = epsilon


class SubsetWithLabel(frequency_oracles.SubsetSelection):
    """Always reports a set that holds the true label."""

    def _draw_rows(self, labels: exact.Labels, entropy: Entropy) -> exact.Bits:
        sizes = np.full(labels.size, self.omega - 1)
        rows = exact.random_subsets(sizes, labels, self.n_classes, entropy)
        rows[np.arange(labels.size), labels] = True
        return rows


# Two records of four numbers that the formula drives apart.
FAR_APART = np.array([-1.0, -0.99, -0.98, 1.02]), np.array([1.0, 0.0, 0.5, -0.5])


class MinMax2023(PerCoordinate):
    """Rescales each record by its own (z - min|z|) / (max|z| - min|z|), unclipped.

    The formula of the 2023 paper, with noise for [-1, 1]: negative numbers leave that
    range, (-1, -.99, -.98, 1.02) becomes -49.5 and less, so no epsilon holds.
    """

    def __init__(self, *, epsilon: float, d: int) -> None:
        super().__init__("laplace", d, epsilon=epsilon)
        self.noise = Laplace(epsilon=self.scalar.epsilon).noise

    def clip(self, values: ArrayLike) -> tuple[FloatArray, int]:
        records = self._check_records(values)
        sizes = np.abs(records)
        if (sizes.max(axis=1) == sizes.min(axis=1)).any():
            raise UserError("a record of equal magnitudes cannot be rescaled.")
        return records, 0

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        sizes = np.abs(values)
        least, most = sizes.min(axis=1), sizes.max(axis=1)
        z = (values - least[:, None]) / (most - least)[:, None]
        noise = self.noise.sample(z.size, entropy).reshape(z.shape)
        return np.asarray((np.rint(z / exact.GRID_STEP) + noise) * exact.GRID_STEP)


class GaussianHalved(Gaussian):
    """Draws noise that was calibrated to half the diameter of the box."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        noise = DiscreteGaussian(4 * self.noise.law.rate).sample(values.size, entropy)
        steps = np.rint(values / exact.GRID_STEP) + noise.reshape(values.shape)
        return np.asarray(steps * exact.GRID_STEP)


FEW = 16


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


class QuietAtTenths(QuietBin):
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
        clipped, _ = self.clip(values)
        return np.where(clipped == values, self._draw(clipped, entropy), clipped)


class OneNoiseForTwo(PerCoordinate):
    """Adds the same noise to the first two numbers of a record."""

    def __init__(self, *, epsilon: float, d: int) -> None:
        super().__init__(Laplace.name, d, epsilon=epsilon)

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        noise = super()._draw(np.zeros(values.shape), entropy)
        noise[:, 1] = noise[:, 0]
        return on_grid(values) + noise


class CoarseThreshold(piecewise.Piecewise):
    """Settles the side by the upper 32 bits of a word."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        class Upper:
            def words(self, n: int) -> NDArray[np.uint64]:
                return entropy.words(n) >> np.uint64(32) << np.uint64(32)

        return super()._draw(values, Upper())


class CoarseRounding(duchi.Duchi):
    """Rounds to a sign by 12 bits of a word, where the grid has 21."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        words = entropy.words(2 * values.size).reshape(2, *values.shape)
        uniform = words[0] >> np.uint64(52) << np.uint64(exact.GRID_BITS + 1 - 12)
        positive = uniform < (exact.grid_index(values) + exact.GRID_ONE).view(np.uint64)
        keeps_sign = words[1] < np.uint64(self.threshold)
        return np.where(positive == keeps_sign, self.largest, -self.largest)


class HalvedThreshold(privunit.PrivUnit):
    """Keeps candidates outside the cap half as often as it should: ln 2 too much."""

    def __init__(self, *, epsilon: float, d: int) -> None:
        super().__init__(epsilon=epsilon, d=d)
        self.threshold_out //= 2


class WordsByLabel(RRWithPrior):
    """Draws fewer words for likely labels than for unlikely ones."""

    def _draw(self, values: exact.Labels, entropy: Entropy) -> exact.Labels:
        k, rank = int(self.k[0]), self._rank[0, values].astype(np.int64)
        moves = entropy.words(rank.size) >= np.uint64(self.threshold)
        moved, unlikely = np.flatnonzero(moves & (rank >= 0)), np.flatnonzero(rank < 0)
        other_labels = exact.uniform_below(k - 1, moved.size, entropy)
        rank[moved] = other_labels + (other_labels >= rank[moved])
        rank[unlikely] = exact.uniform_below(k, unlikely.size, entropy)
        return np.asarray(self.outputs()[rank])
