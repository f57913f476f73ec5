"""A model around its records as nothing but a thing that answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.entropy import Entropy
from curvote.utility.engines.asking import predict_batched
from curvote.utility.engines.base import Question
from curvote.validate import FloatArray

# Rows that are asked about in one call of ``predict``.
_MOST_ROWS = 1 << 17


def uniform_numbers(count: tuple[int, ...], entropy: Entropy) -> FloatArray:
    """Return uniform numbers in [0, 1), of 53 bits."""
    words = entropy.words(int(np.prod(count)))
    return np.asarray((words >> np.uint64(11)).reshape(count) * 2.0**-53)


@dataclass
class BoxTester:
    """Counter of wrong answers at uniform points of boxes around records.

    ``queries`` (n,) counts them; each record's own answer comes on top.
    """

    question: Question
    entropy: Entropy
    clean: NDArray[Any] = field(init=False)
    queries: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.clean = predict_batched(self.question.model, self.question.records)
        self.queries = np.zeros(len(self.clean), dtype=np.int64)

    def wrong(
        self, which: NDArray[np.intp], low: FloatArray, high: FloatArray, number: int
    ) -> NDArray[np.int64]:
        """Return the number of wrong answers for the records ``which`` (m,).

        The points are uniform in the boxes ``low`` (m, s) to ``high``.
        """
        self.queries[which] += number
        counts = np.zeros(len(which), dtype=np.int64)
        for i, record in enumerate(which):
            for start in range(0, number, _MOST_ROWS):
                size = min(_MOST_ROWS, number - start)
                counts[i] += self._count_batch(record, low[i], high[i], size)
        return counts

    def _count_batch(
        self, record: np.intp, low: FloatArray, high: FloatArray, size: int
    ) -> int:
        """Return the number of wrong answers in one batch of points."""
        rows = np.repeat(self.question.records[[record]], size, axis=0)
        share = uniform_numbers((size, len(low)), self.entropy)
        rows[:, list(self.question.sensitive)] = low + (high - low) * share
        answers = predict_batched(self.question.model, rows)
        return int(np.count_nonzero(answers != self.clean[record]))
