"""Public partitions of z into cells: bins, halves and recursive grids.

A partition is made by cuts, one after the other: cut s parts the cell ``of[s]`` at a
threshold of one number, and what lies beyond it is the new cell s + 1. Bins of one
number, a stump and a recursive grid are all of this form. Thresholds are quantiles of
the law that the public takes a z for: no record has a part in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.errors import UserError

Array = NDArray[np.float64]
IndexArray = NDArray[np.int64]

PARTS: Final = ("of", "feature", "threshold")
# What becomes of a standard normal number, where the constants fit (see `SQUARE`).
ASSUMED_LAWS: Final[Mapping[str, Callable[[Array], Array]]] = {
    "standard": np.asarray,
    "none": np.asarray,
    "tanh": np.tanh,
    "max_abs": np.tanh,
    "min_max": lambda u: u / 3,
}


def assumed_quantiles(rescale: str, shares: ArrayLike) -> Array:
    """Return the quantiles of a z under its assumed law."""
    from scipy.special import ndtri  # most clients do without

    law = ASSUMED_LAWS[validate.one_of(ASSUMED_LAWS, rescale=rescale)]
    return np.asarray(law(ndtri(np.asarray(shares, dtype=np.float64))))


@dataclass(frozen=True, eq=False)
class Partitions:
    """Q partitions of R^d into C cells each, defined by cuts.

    All three are (Q, C - 1). A cut that parts a cell before it is there, a number
    that is none of the ``d`` or a threshold that is not finite is a UserError.
    """

    of: IndexArray
    feature: IndexArray
    threshold: Array
    d: int

    def __post_init__(self) -> None:
        of, feature, threshold = (
            validate.finite(**{name: getattr(self, name)}) for name in PARTS
        )
        shapes = {part.shape for part in (of, feature, threshold)}
        if len(shapes) > 1 or threshold.ndim != 2 or not threshold.size:
            raise UserError(
                f"the cuts have shapes {', '.join(map(str, sorted(shapes)))}; of,"
                " feature and threshold hold a row for each partition and a number for"
                " each of its cuts."
            )
        parts = (
            _check_indices("of", of, np.arange(of.shape[1])),
            _check_indices("feature", feature, self.d - 1),
            threshold,
        )
        for name, values in zip(PARTS, parts, strict=True):
            object.__setattr__(self, name, values)

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any], d: int) -> Partitions:
        """Build the partitions from columns; a missing one is a UserError."""
        missing = [name for name in PARTS if name not in columns]
        if missing:
            raise UserError(f"nothing is stated of {', '.join(missing)} of the cells.")
        return cls(columns["of"], columns["feature"], columns["threshold"], d)

    @property
    def count(self) -> int:
        """The number of partitions, Q."""
        return len(self.threshold)

    @property
    def cells(self) -> int:
        """The number of cells of each partition, C."""
        return int(self.threshold.shape[1]) + 1

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The cuts as columns, from which `from_columns` builds equal partitions."""
        return {name: getattr(self, name) for name in PARTS}

    def select(self, rows: IndexArray) -> Partitions:
        """Return some of the partitions."""
        of, feature, threshold = (column[rows] for column in self.columns.values())
        return Partitions(of, feature, threshold, self.d)

    def place(self, z: Array, which: IndexArray) -> IndexArray:
        """Return the cell (n,) of each z (n, d) in one of the partitions."""
        cells, rows = np.zeros(len(z), dtype=np.int64), np.arange(len(z))
        for s in range(self.cells - 1):
            inside = cells == self.of[which, s]
            beyond = z[rows, self.feature[which, s]] > self.threshold[which, s]
            cells[inside & beyond] = s + 1
        return cells


def _check_indices(name: str, values: Array, most: Any) -> IndexArray:
    wrong = (values != np.floor(values)) | (values < 0) | (values > most)
    if wrong.any():
        raise UserError(f"{name} holds {values[wrong][0]:g}, which names none.")
    return values.astype(np.int64)


def bin_partitions(d: int, rescale: str, count: int) -> Partitions:
    """Return a partition for each number: ``count`` equally likely bins."""
    cuts = assumed_quantiles(rescale, np.arange(1, count) / count)
    of = np.tile(np.arange(count - 1), (d, 1))
    feature = np.tile(np.arange(d)[:, None], (1, count - 1))
    return Partitions(of, feature, np.tile(cuts, (d, 1)), d)


def half_partitions(d: int, rescale: str, thresholds: int) -> Partitions:
    """Return a partition in two for each number and threshold."""
    cuts = assumed_quantiles(rescale, np.arange(1, thresholds + 1) / (thresholds + 1))
    feature = np.repeat(np.arange(d), thresholds)[:, None]
    return Partitions(np.zeros_like(feature), feature, np.tile(cuts, d)[:, None], d)


def random_grid(
    d: int, rescale: str, cells: int, rng: np.random.Generator
) -> Partitions:
    """Return one random recursive partition (max-edge rule).

    The max-edge rule of Ma & Yang (2024): a longest edge of a largest cell
    is halved, one of equally long ones at random. An edge is as long as its share of
    the number's assumed law.
    """
    low, high = np.zeros((1, d)), np.ones((1, d))
    cuts = []
    for new in range(1, cells):
        edges = high - low
        # Earliest first: cells of one depth are parted before those that came of them.
        cell = int(edges.prod(axis=1).argmax())
        longest = np.flatnonzero(edges[cell] == edges[cell].max())
        feature = int(rng.choice(longest))
        middle = (low[cell, feature] + high[cell, feature]) / 2
        low, high = (np.vstack([side, side[cell]]) for side in (low, high))
        high[cell, feature] = low[new, feature] = middle
        cuts.append((cell, feature, float(assumed_quantiles(rescale, middle))))
    of, feature_, threshold = (np.array([part]) for part in zip(*cuts, strict=True))
    return Partitions(of, feature_, threshold, d)
