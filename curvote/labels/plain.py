"""True labels in the form of codes: for a study's `clean` rows, protects nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from curvote.mechanisms.labels import are_codes, in_blocks
from curvote.validate import FloatArray

NONE: Final = "none"


@dataclass(frozen=True)
class Plain:
    """No mechanism: the place of the label itself, (n,) int64.

    It reads codes as a label mechanism does, but draws none, claims no epsilon, is in
    no registry, and nothing that it reads is ever written or released.
    """

    n_classes: int
    name: ClassVar[str] = NONE
    unbiased: ClassVar[bool] = True

    def possible(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Say for each output whether it is a label."""
        return are_codes(outputs, self.n_classes)

    def variance(self, x: NDArray[Any]) -> FloatArray:
        """Return the variance of ``decode``, (n, n_classes): none."""
        return np.zeros((np.size(x), self.n_classes))

    def decode(self, outputs: NDArray[Any]) -> FloatArray:
        """Return the one-hot labels, (n, n_classes)."""
        labels = np.arange(self.n_classes)
        return in_blocks(outputs, self.n_classes, lambda rows: rows[:, None] == labels)

    def likelihood(self, outputs: NDArray[Any]) -> FloatArray:
        """Return 1 for the label and 0 for all others, (n, n_classes)."""
        return self.decode(outputs)
