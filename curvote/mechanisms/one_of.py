"""1-of-K mechanism: a class and a direction, reported as a class and a direction."""

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
    bernoulli_events,
    directions_at_heights,
    normal_numbers,
    normalise_rows,
    uniform_numbers,
)
from curvote.validate import FloatArray

Labels = NDArray[np.int64]
# Of more, the caps' smallest share could not be had: see `cap.best_cap`.
MAX_CLASSES = 1 << 10


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
        if self.n_classes > MAX_CLASSES:
            raise UserError(f"n_classes is {n_classes}; at most {MAX_CLASSES:,}.")
        if validate.at_least(2 * self.n_classes, d=d) % self.n_classes:
            raise UserError(
                f"d is {d}; a record is {self.n_classes} blocks of as many numbers."
            )
        super().__init__(epsilon=epsilon, d=d)

    def split_records(self, records: FloatArray) -> tuple[Labels, FloatArray]:
        """Return the class (n,) and the block (n, p) of records."""
        blocks = self._blocks(records)
        classes = np.einsum("ijk,ijk->ij", blocks, blocks).argmax(axis=1)
        return classes, blocks[np.arange(len(classes)), classes]

    def _blocks(self, records: NDArray[Any]) -> NDArray[Any]:
        return np.reshape(records, (-1, self.n_classes, self.length))

    def join_records(self, classes: NDArray[Any], directions: FloatArray) -> FloatArray:
        """Return records (n, d) of classes (n,) and directions (n, p)."""
        blocks = np.zeros((len(classes), self.n_classes, self.length))
        blocks[np.arange(len(classes)), classes] = directions
        return blocks.reshape(-1, self.d)

    def clip(self, values: ArrayLike) -> tuple[FloatArray, int]:
        """Return the longest blocks normalised, and how many rows that changes."""
        rows = self._check_records(values)
        largest = np.abs(rows).max(axis=1, keepdims=True)
        classes, _ = self.split_records(rows / np.where(largest == 0, 1, largest))
        block = self._blocks(rows)[np.arange(len(classes)), classes]
        units, changed = normalise_rows(block)
        rest = np.count_nonzero(rows, axis=1) > np.count_nonzero(block, axis=1)
        return self.join_records(classes, units), int(np.count_nonzero(changed | rest))

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        return self.join_records(*self.answers(*self.split_records(values), entropy))

    def answers(
        self, classes: Labels, u: FloatArray, entropy: Entropy
    ) -> tuple[Labels, FloatArray]:
        """Return exact draws: classes (n,) and directions (n, p) of length 1/m.

        ``classes`` are 0..K-1 and ``u`` unit vectors: neither is checked here.
        """
        out = self._draw_units(np.column_stack([classes, u]), entropy)
        return out[:, 0].astype(np.int64), out[:, 1:] / self.m

    def _candidates(self, shape: tuple[int, int], entropy: Entropy) -> FloatArray:
        """Return candidate classes and normal vectors (n, count, 1 + p)."""
        named = exact.uniform_below(self.n_classes, shape[0] * shape[1], entropy)
        vectors = super()._candidates(shape, entropy)
        return np.concatenate([named.reshape(*shape, 1), vectors], axis=2)

    def _unit(self, candidates: FloatArray) -> FloatArray:
        units = super()._unit(candidates[:, 1:])
        return np.column_stack([candidates[:, 0], units])

    def _inside(self, candidates: FloatArray, u: FloatArray) -> Any:
        """Return which candidates name u's class and lie in the cap around u."""
        same_class = candidates[..., 0] == u[:, :1]
        return same_class & super()._inside(candidates[..., 1:], u[:, 1:])

    def simulate(self, values: ArrayLike, entropy: Entropy) -> FloatArray:
        """Return draws of the same law by its parts: studies only."""
        records, _ = self.clip(values)
        return self.join_records(
            *self.simulate_reports(*self.split_records(records), entropy)
        )

    def simulate_reports(
        self, classes: Labels, u: FloatArray, entropy: Entropy
    ) -> tuple[Labels, FloatArray]:
        """Return draws of ``draw_reports``'s law in floating point."""
        n, share = len(u), self.cap.share
        inside = bernoulli_events(self.p, n, entropy)
        keeps_class = inside | bernoulli_events(
            (1 - share) / (self.n_classes - share), n, entropy
        )
        other_class = exact.uniform_below(self.n_classes - 1, n, entropy)
        v = directions_at_heights(
            u, self.cap.draw_heights(inside, uniform_numbers(n, entropy)), entropy
        )
        away = np.flatnonzero(~keeps_class)
        v[away] = super()._unit(
            normal_numbers(v[away].size, entropy).reshape(v[away].shape)
        )
        named = np.where(keeps_class, classes, other_class + (other_class >= classes))
        return named, v / self.m

    def possible_mask(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each record whether exactly one block has length 1/m."""
        blocks = self._blocks(outputs)
        single = np.count_nonzero((blocks != 0).any(axis=2), axis=1) == 1
        return np.asarray(single & self.has_report_length(outputs))

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return the log-likelihood up to ``margin``."""
        answers = self.split_records(np.asarray(at, dtype=np.float64))
        return self.log_likelihood(self.split_records(self.mean(x)), answers)

    def log_likelihood(
        self, record: tuple[Labels, FloatArray], at: tuple[Labels, FloatArray]
    ) -> FloatArray:
        """Return ln P(at | record) up to a constant and ``margin``, (n,).

        Both are classes (n,) and directions (n, p).
        """
        (class_, u), (named, v) = record, at
        heights = np.sum(v * u, axis=-1) / np.linalg.norm(v, axis=-1)
        inside = (named == class_) & (heights >= self.cap.gamma)
        return np.asarray(inside * exact.exact_log(self.worst_ratio()))

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the variance of each coordinate, (n, d): 1/m^2 - 1 in all."""
        inside, outside = self._weights
        mean, total_kept = self.mean(x), self.n_classes * self.acceptance
        block_variance = (
            inside * self.cap.share + outside * (1 - self.cap.share)
        ) / total_kept
        rest = 1 / self.length - self.cap.second
        along = (inside * self.cap.second + outside * rest) / total_kept
        classes, u = self.split_records(mean)
        across = (block_variance - along) / (self.length - 1) * (1 - u**2)
        blocks = np.full((len(u), self.n_classes, self.length), outside / total_kept)
        blocks /= self.length
        blocks[np.arange(len(u)), classes] = along * u**2 + across
        return np.asarray(blocks.reshape(mean.shape) / self.m**2 - mean**2)


@lru_cache(maxsize=256)
def one_of_variance(n_classes: int, p: int, epsilon: float) -> float:
    """Return the mean variance of a coordinate: (1/m^2 - 1)/(K p)."""
    mechanism = OneOf(epsilon=epsilon, d=n_classes * p, n_classes=n_classes)
    return float((mechanism.m**-2 - 1) / mechanism.d)
