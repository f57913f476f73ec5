"""Two rounds of codes (LP-2ST): the first half's codes make the second half's priors.

Ghazi, Golowich, Kumar, Manurangsi & Zhang 2021, algorithm 3, for any learner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.labels.encoding import encode
from curvote.validate import FloatArray

ROUNDS_ENCODER = "rr_with_prior"
# Probabilities (m, K) of the records of second-round clients from first-round codes.
PriorFunction = Callable[[NDArray[np.intp], Codes, NDArray[np.intp]], FloatArray]


@dataclass(frozen=True)
class TwoRounds:
    """Labels (n,) of known classes (K,), each asked for once, in one of two rounds."""

    labels: NDArray[Any]
    classes: NDArray[Any]
    epsilon: float
    entropy: Entropy

    def codes(self, order: NDArray[np.intp], prior: PriorFunction) -> Iterator[Codes]:
        """Yield the codes of the first round, then those of all clients in one.

        The first half of ``order`` answers first, under a uniform prior: that is
        `k_rr`. The others' prior is what ``prior`` learns from those codes.
        """
        half = len(order) // 2
        if not half:
            raise UserError(f"two rounds take two records or more; X has {len(order)}.")
        first, second = order[:half], order[half:]
        k = len(self.classes)
        early = self._encode_rows(first, np.full((half, k), 1 / k))
        yield early
        late = self._encode_rows(second, prior(first, early, second))
        yield _join_rounds(early, late)[np.argsort(order)]

    def _encode_rows(self, rows: NDArray[np.intp], prior: FloatArray) -> Codes:
        return encode(
            self.labels[rows],
            self.classes,
            self.epsilon,
            ROUNDS_ENCODER,
            self.entropy,
            prior=prior,
        )


def _join_rounds(early: Codes, late: Codes) -> Codes:
    return replace(
        early,
        values=np.concatenate([early.values, late.values]),
        prior=np.concatenate([np.asarray(early.prior), np.asarray(late.prior)]),
    )
