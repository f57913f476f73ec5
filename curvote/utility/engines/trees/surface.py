"""The surface of trees: shares as sums over cells, and boxes of one answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.mechanisms.law import Law, Mixture
from curvote.utility.channel import Channel
from curvote.utility.engines.base import Answers, Draws, Question, Surface
from curvote.utility.engines.trees.cells import Cells
from curvote.validate import FloatArray

# Records whose laws are asked at once.
AT_ONCE = 256


@dataclass(frozen=True)
class TreesSurface(Surface):
    """The classes of all cells around n records; ``asked`` (n,) queries made them."""

    question: Question
    cells: Cells
    asked: NDArray[np.int64]

    def answers(self, channel: Channel, draws: Draws) -> Answers:
        """Return exact shares; where the channel states no law, drawn ones."""
        share = np.vstack(list(self._shares(channel)))
        return Answers(share, share, share, "exact", self.asked)

    def _shares(self, channel: Channel) -> Iterator[FloatArray]:
        values = self.question.values
        for begin in range(0, len(values), AT_ONCE):
            chosen = np.arange(begin, min(begin + AT_ONCE, len(values)))
            law = channel.law(values[chosen])
            assert law is not None
            masses = [
                [self._masses(each, j, chosen) for j, each in enumerate(term)]
                for term in law.terms
            ]
            for row, i in enumerate(chosen):
                own = [[mass[row] for mass in term] for term in masses]
                yield self._share(i, own, law.weights[row])

    def _masses(self, law: Law, axis: int, chosen: NDArray[np.intp]) -> FloatArray:
        """Return the mass of each cell of an axis, (n, most cells), 0 behind the last."""
        count = self.cells.shape[chosen, axis] - 1
        start = self.cells.starts[chosen, axis]
        place = np.arange(max(int(count.max()), 1))
        inside = place < count[:, None]
        flat = np.append(self.cells.cuts[axis], 0.0)
        at = flat[np.minimum(start[:, None] + place, len(flat) - 1)]
        upto = np.where(inside, law.upto(at), 1.0)
        return np.diff(upto, axis=1, prepend=0.0, append=1.0)

    def _share(self, i: int, masses: list[list[FloatArray]], weights: FloatArray) -> FloatArray:
        """Return the shares (K,) of one record."""
        s = self.cells.shape.shape[1]
        lines = [np.array([term[j] for term in masses])[:, : self.cells.shape[i, j]] for j in range(s)]
        lines[0] = lines[0] * weights[:, None]
        window = [_support(line) for line in lines]
        lines = [line[:, a:b] for line, (a, b) in zip(lines, window, strict=True)]
        classes = self.cells.classes(i, window)
        share = np.zeros(self.n_classes)
        for k in range(1, self.n_classes):
            share[k] = _contracted(classes == k, lines)
        share[0] = max(1.0 - share.sum(), 0.0)
        return share
