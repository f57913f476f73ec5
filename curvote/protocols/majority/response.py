"""Message of `majority`, a noised label, and its randomized response."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.classes import class_indices
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.mechanisms.k_rr import KRR


@dataclass(frozen=True, eq=False)
class Response:
    """Randomized response on a label: its mechanism and codes by class.

    ``words`` (K,) are numbers, rising; ``make_mechanism`` takes ``epsilon``.
    """

    name: str
    words: NDArray[np.int64]
    make_mechanism: Callable[..., BinaryRR | KRR]

    def encode(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        """Return the codes (n,) of labels, which are places of classes."""
        return self.words[class_indices(labels, self.words.size)]

    def counts(self, noised: NDArray[Any]) -> NDArray[np.int64]:
        """Return how many noised labels (n,) name each class, (K,)."""
        named = np.searchsorted(self.words, noised)
        return np.bincount(named, minlength=self.words.size)


def response_for(n_classes: int) -> Response:
    """Return the randomized response for so many classes."""
    if n_classes == 2:
        return Response(BinaryRR.name, np.array([-1, 1]), BinaryRR)
    make_krr = partial(KRR, n_classes=n_classes)
    return Response(KRR.name, np.arange(n_classes), make_krr)
