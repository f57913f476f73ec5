"""Randomized response on a label: a sign of two classes, the place of one of more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.classes import places
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.mechanisms.k_rr import KRR


@dataclass(frozen=True, eq=False)
class Response:
    """How a label is noised: by which mechanism, and what it says of each class.

    ``words`` (K,) are numbers, rising; ``made`` takes ``epsilon``.
    """

    name: str
    words: NDArray[np.int64]
    made: Callable[..., BinaryRR | KRR]

    def said(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        """Return what labels say, (n,), that are places of classes; else UserError."""
        return self.words[places(labels, self.words.size)]

    def counts(self, told: NDArray[Any]) -> NDArray[np.int64]:
        """Return how many noised labels (n,) name each class, (K,)."""
        named = np.searchsorted(self.words, told)
        return np.bincount(named, minlength=self.words.size)


def response(n_classes: int) -> Response:
    """Return the randomized response for so many classes."""
    if n_classes == 2:
        return Response(BinaryRR.name, np.array([-1, 1]), BinaryRR)
    kept = partial(KRR, n_classes=n_classes)
    return Response(KRR.name, np.arange(n_classes), kept)
