"""Scores of classes as quadratics of the sensitive values; the largest one answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.validate import FloatArray


@dataclass(frozen=True)
class Along:
    """K scores as quadratics of one value, for each of n records and m settings.

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
    """K scores of n records: constant + v @ linear + v' square v, v (s,) sensitive.

    ``constant`` (n, K); ``linear`` (n, s, K), or (1, s, K) where records share it;
    ``square`` (s, s, K), symmetric. The largest score answers;
    of equal ones the first, as argmax has it.
    """

    constant: FloatArray
    linear: FloatArray
    square: FloatArray

    @property
    def s(self) -> int:
        """The number of values."""
        return int(self.square.shape[0])

    @property
    def curved(self) -> bool:
        """Whether some scores differ by more than straight lines."""
        return bool((self.square != self.square[..., :1]).any())

    @property
    def classes(self) -> int:
        """The number of classes K."""
        return int(self.constant.shape[1])

    def at(self, values: FloatArray) -> FloatArray:
        """Return the scores at ``values`` (n, s), (n, K)."""
        linear = np.broadcast_to(self.linear, (len(values), *self.linear.shape[1:]))
        straight = np.einsum("ns,nsk->nk", values, linear)
        bent = np.einsum("ns,nt,stk->nk", values, values, self.square)
        return np.asarray(self.constant + straight + bent)

    def places(self, values: FloatArray) -> NDArray[np.int64]:
        """Return the answers at ``values`` (n, s), (n,)."""
        return np.asarray(np.argmax(self.at(values), axis=1), dtype=np.int64)

    def of(self, rows: slice | NDArray[np.intp]) -> Scores:
        """Return the scores of some records."""
        shared = len(self.linear) == 1
        linear = self.linear if shared else self.linear[rows]
        return Scores(self.constant[rows], linear, self.square)

    def held(self, held: FloatArray, free: list[int]) -> Scores:
        """Return the scores of the ``free`` values, the others held at ``held`` (n, s).

        What stands in ``held`` for the free ones does not matter.
        """
        still = np.array(held, dtype=np.float64)
        still[:, free] = 0.0
        linear = self.linear + 2 * np.einsum("nt,stk->nsk", still, self.square)
        constant = self.at(still)
        return Scores(constant, linear[:, free], self.square[np.ix_(free, free)])

    def along(self, place: int, other: int, at: FloatArray) -> Along:
        """Return the scores along a value, the ``other`` one at ``at`` (n, m)."""
        v = at[..., None]
        first, second = self.linear[:, None, other], self.linear[:, None, place]
        constant = (first + self.square[other, other] * v) * v
        constant += self.constant[:, None]
        cross = self.square[place, other]
        linear = second + 2 * cross * v if cross.any() else second
        return Along(constant, linear, self.square[place, place])

    def alone(self) -> Along:
        """Return the scores along their only value, m = 1."""
        return Along(self.constant[:, None], self.linear, self.square[0, 0])

    def active(self) -> list[int]:
        """Return the values that move some difference of scores."""
        bent = (self.square != self.square[..., :1]).any(axis=(1, 2))
        straight = (self.linear != self.linear[..., :1]).any(axis=(0, 2))
        return [int(i) for i in np.flatnonzero(bent | straight)]
