"""1-of-K: a class and a direction, reported as one of the classes and a direction."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms import exact
from curvote.mechanisms.privunit import (
    PrivUnit,
    around,
    happens,
    normalised,
    normals,
    uniforms,
)
from curvote.validate import FloatArray

Labels = NDArray[np.int64]
# Of more, the caps' smallest share could not be had: see `cap.best_cap`.
MOST_CLASSES = 1 << 10


class OneOf(PrivUnit):
    """Reports a class y of K and a unit vector u of R^p by e_k (x) v/m, unbiased.

    A record is e_y (x) u: K blocks of p = d/K numbers, 2 or more, all zero but for the
    block of its class, which is a unit vector. ``clip`` keeps a row's longest block,
    normalises it, and counts the rows that this changes. It is `PrivUnit` on K spheres:
    the class k that is named and the direction v are e^epsilon times as likely where
    k = y and <v, u> >= gamma as elsewhere, gamma that of the least variance. The
    largest E[<v, u>; k = y] is ``m``, and gamma there is m itself.

    Candidates' classes are uniform by exact integers, so that only the caps' share is
    off: by a K-th of `PrivUnit`'s ``margin``.
    """

    name = "one_of"

    def __init__(self, *, epsilon: float, d: int, n_classes: int) -> None:
        self.n_classes = self.spheres = validate.at_least(2, n_classes=n_classes)
        if self.n_classes > MOST_CLASSES:
            raise UserError(f"n_classes is {n_classes}; at most {MOST_CLASSES:,}.")
        if validate.at_least(2 * self.n_classes, d=d) % self.n_classes:
            raise UserError(
                f"d is {d}; a record is {self.n_classes} blocks of as many numbers."
            )
        super().__init__(epsilon=epsilon, d=d)

    def parted(self, records: FloatArray) -> tuple[Labels, FloatArray]:
        """Return the class (n,) and the block (n, p) of records with one block."""
        blocks = self._blocks(records)
        own = np.einsum("ijk,ijk->ij", blocks, blocks).argmax(axis=1)
        return own, blocks[np.arange(len(own)), own]

    def _blocks(self, records: NDArray[Any]) -> NDArray[Any]:
        return np.reshape(records, (-1, self.n_classes, self.length))

    def joined(self, classes: NDArray[Any], directions: FloatArray) -> FloatArray:
        """Return records (n, d) of classes (n,) and directions (n, p)."""
        blocks = np.zeros((len(classes), self.n_classes, self.length))
        blocks[np.arange(len(classes)), classes] = directions
        return blocks.reshape(-1, self.d)

    def clip(self, values: ArrayLike) -> tuple[FloatArray, int]:
        """Return the longest blocks normalised, and how many rows that changes."""
        rows = self._records(values)
        largest = np.abs(rows).max(axis=1, keepdims=True)
        own, _ = self.parted(rows / np.where(largest == 0, 1, largest))
        block = self._blocks(rows)[np.arange(len(own)), own]
        units, changed = normalised(block)
        rest = np.count_nonzero(rows, axis=1) > np.count_nonzero(block, axis=1)
        return self.joined(own, units), int(np.count_nonzero(changed | rest))

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        return self.joined(*self.answers(*self.parted(values), entropy))

    def answers(
        self, classes: Labels, u: FloatArray, entropy: Entropy
    ) -> tuple[Labels, FloatArray]:
        """Return classes (n,) and directions (n, p) of length 1/m, drawn exactly.

        ``classes`` are 0..K-1 and ``u`` unit vectors: neither is checked here.
        """
        out = self._units(np.column_stack([classes, u]), entropy)
        return out[:, 0].astype(np.int64), out[:, 1:] / self.m

    def _candidates(self, shape: tuple[int, int], entropy: Entropy) -> FloatArray:
        """Return classes and normal vectors (n, each, 1 + p), of words alone."""
        named = exact.below(self.n_classes, shape[0] * shape[1], entropy)
        vectors = super()._candidates(shape, entropy)
        return np.concatenate([named.reshape(*shape, 1), vectors], axis=2)

    def _unit(self, candidates: FloatArray) -> FloatArray:
        units = super()._unit(candidates[:, 1:])
        return np.column_stack([candidates[:, 0], units])

    def _inside(self, candidates: FloatArray, u: FloatArray) -> Any:
        """Say for each candidate whether it names u's class, in the cap around u."""
        own = candidates[..., 0] == u[:, :1]
        return own & super()._inside(candidates[..., 1:], u[:, 1:])

    def simulate(self, values: ArrayLike, entropy: Entropy) -> FloatArray:
        """Return draws of the same law by its parts: studies only."""
        records, _ = self.clip(values)
        return self.joined(*self.simulated(*self.parted(records), entropy))

    def simulated(
        self, classes: Labels, u: FloatArray, entropy: Entropy
    ) -> tuple[Labels, FloatArray]:
        """Return what ``answers`` does, by the law's parts, in floating point."""
        n, share = len(u), self.cap.share
        inside = happens(self.p, n, entropy)
        own = inside | happens((1 - share) / (self.n_classes - share), n, entropy)
        others = exact.below(self.n_classes - 1, n, entropy)
        v = around(u, self.cap.heights(inside, uniforms(n, entropy)), entropy)
        away = np.flatnonzero(~own)
        v[away] = super()._unit(normals(v[away].size, entropy).reshape(v[away].shape))
        named = np.where(own, classes, others + (others >= classes))
        return named, v / self.m

    def possible(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Say for each record whether one block is not 0, and has the length 1/m."""
        blocks = self._blocks(outputs)
        one = np.count_nonzero((blocks != 0).any(axis=2), axis=1) == 1
        return np.asarray(one & self.as_long(outputs))

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return it but for ``margin``, too."""
        answers = self.parted(np.asarray(at, dtype=np.float64))
        return self.log_likelihood(self.parted(self.mean(x)), answers)

    def log_likelihood(
        self, record: tuple[Labels, FloatArray], at: tuple[Labels, FloatArray]
    ) -> FloatArray:
        """Return ln P(at | record) but for a constant and ``margin``, (n,).

        Both are classes (n,) and directions (n, p).
        """
        (own, u), (named, v) = record, at
        heights = np.sum(v * u, axis=-1) / np.linalg.norm(v, axis=-1)
        inside = (named == own) & (heights >= self.cap.gamma)
        return np.asarray(inside * exact.log(self.worst_ratio()))

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the variance of each coordinate, (n, d): 1/m^2 - 1 in all."""
        inside, outside = self._weights
        mean, each = self.mean(x), self.n_classes * self.kept
        own = (inside * self.cap.share + outside * (1 - self.cap.share)) / each
        rest = 1 / self.length - self.cap.second
        along = (inside * self.cap.second + outside * rest) / each
        classes, u = self.parted(mean)
        across = (own - along) / (self.length - 1) * (1 - u**2)
        blocks = np.full((len(u), self.n_classes, self.length), outside / each)
        blocks /= self.length
        blocks[np.arange(len(u)), classes] = along * u**2 + across
        return np.asarray(blocks.reshape(mean.shape) / self.m**2 - mean**2)


@lru_cache(maxsize=256)
def noise(n_classes: int, p: int, epsilon: float) -> float:
    """Return the variance of a coordinate, the mean over all: (1/m^2 - 1)/(K p)."""
    made = OneOf(epsilon=epsilon, d=n_classes * p, n_classes=n_classes)
    return float((made.m**-2 - 1) / made.d)
