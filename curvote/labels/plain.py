"""Codes of labels, one a client, with all that is public about them, and their file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from curvote.mechanisms.labels import fill_in_blocks, valid_codes
from curvote.validate import FloatArray

NONE: Final = "none"


@dataclass(frozen=True)
class TrueLabels:
    """No mechanism: an output is the place of the label itself, (n,) int64.

    It reads codes as a label mechanism does, but draws none, claims no epsilon, is in
    no registry, and nothing that it reads is ever written or released.
    """

    n_classes: int
    name: ClassVar[str] = NONE
    unbiased: ClassVar[bool] = True

    def possible_mask(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each output whether it is a label."""
        return valid_codes(outputs, self.n_classes)

    def variance(self, x: NDArray[Any]) -> FloatArray:
        """Return the variance of ``decode``, (n, n_classes): zeros."""
        return np.zeros((np.size(x), self.n_classes))

    def decode(self, outputs: NDArray[Any]) -> FloatArray:
        """Return the one-hot labels, (n, n_classes)."""
        labels = np.arange(self.n_classes)
        return fill_in_blocks(
            outputs, self.n_classes, lambda rows: rows[:, None] == labels
        )

    def likelihood(self, outputs: NDArray[Any]) -> FloatArray:
        """Return 1 for the label and 0 for all others, (n, n_classes)."""
        return self.decode(outputs)
