"""Scores of classes as quadratics of the sensitive values; the largest one answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.validate import FloatArray


@dataclass(frozen=True)
class ScoreLine:
    """Scores of K classes as quadratics of one value, for n records, m settings.

    ``constant`` and ``linear`` are (n, m, K), ``square`` is (K,).
    """

    constant: FloatArray
    linear: FloatArray
    square: FloatArray

    def at(self, values: FloatArray) -> FloatArray:
        """Return the scores at ``values`` (n, m), (n, m, K)."""
        v = values[..., None]
        return np.asarray(self.constant + (self.linear + self.square * v) * v)

    @property
    def straight(self) -> bool:
        """Whether the scores differ by straight lines only."""
        return bool((self.square == self.square[0]).all())


@dataclass(frozen=True)
class Scores:
    """Scores of K classes: constant + v @ linear + v' square v, v (s,) sensitive.

    ``constant`` (n, K); ``linear`` (n, s, K), or (1, s, K) where records share it;
    ``square`` (s, s, K), symmetric. The largest score answers;
    of equal ones the first, as argmax has it.
    """

    constant: FloatArray
    linear: FloatArray
    square: FloatArray

    @property
    def s(self) -> int:
        """Number of sensitive values."""
        return int(self.square.shape[0])

    @property
    def curved(self) -> bool:
        """Whether some scores differ by more than straight lines."""
        return bool((self.square != self.square[..., :1]).any())

    @property
    def classes(self) -> int:
        """Number of classes K."""
        return int(self.constant.shape[1])

    def at(self, values: FloatArray) -> FloatArray:
        """Return the scores at ``values`` (n, s), (n, K)."""
        linear = np.broadcast_to(self.linear, (len(values), *self.linear.shape[1:]))
        straight = np.einsum("ns,nsk->nk", values, linear)
        quadratic = np.einsum("ns,nt,stk->nk", values, values, self.square)
        return np.asarray(self.constant + straight + quadratic)

    def places(self, values: FloatArray) -> NDArray[np.int64]:
        """Return the class indices of the answers at ``values`` (n, s), (n,)."""
        return np.asarray(np.argmax(self.at(values), axis=1), dtype=np.int64)

    def of(self, rows: slice | NDArray[np.intp]) -> Scores:
        """Return the scores of some records."""
        shared = len(self.linear) == 1
        linear = self.linear if shared else self.linear[rows]
        return Scores(self.constant[rows], linear, self.square)

    def fix_values(self, values: FloatArray, free: list[int]) -> Scores:
        """Return the scores of the ``free`` values, the others fixed at ``values``.

        What stands in ``values`` for the free ones does not matter.
        """
        fixed = np.array(values, dtype=np.float64)
        fixed[:, free] = 0.0
        linear = self.linear + 2 * np.einsum("nt,stk->nsk", fixed, self.square)
        constant = self.at(fixed)
        return Scores(constant, linear[:, free], self.square[np.ix_(free, free)])

    def along(self, place: int, other: int, at: FloatArray) -> ScoreLine:
        """Return the scores along a value, the ``other`` one at ``at`` (n, m)."""
        v = at[..., None]
        first, second = self.linear[:, None, other], self.linear[:, None, place]
        constant = (first + self.square[other, other] * v) * v
        constant += self.constant[:, None]
        cross = self.square[place, other]
        linear = second + 2 * cross * v if cross.any() else second
        return ScoreLine(constant, linear, self.square[place, place])

    def alone(self) -> ScoreLine:
        """Return the scores along their only value, m = 1."""
        return ScoreLine(self.constant[:, None], self.linear, self.square[0, 0])

    def active_values(self) -> list[int]:
        """Return the indices of values that move some difference of scores."""
        curved = (self.square != self.square[..., :1]).any(axis=(1, 2))
        straight = (self.linear != self.linear[..., :1]).any(axis=(0, 2))
        return [int(i) for i in np.flatnonzero(curved | straight)]
