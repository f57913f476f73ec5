"""A release that forgets that it has already answered."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from curvote.entropy import SeededEntropy
from curvote.mechanisms.laplace import Laplace
from curvote.validate import FloatArray

TRUTH = np.array([0.25])


def rerandomised_memo(epsilon: float, seed: int) -> Callable[[], FloatArray]:
    """Return a memoised release whose key changes with every run.

    So nothing is ever found in the memory, and each run noises the value anew.
    """
    mechanism, entropy = Laplace(epsilon=epsilon), SeededEntropy(seed)
    memory: dict[int, FloatArray] = {}

    def release() -> FloatArray:
        run = len(memory)
        if run not in memory:
            memory[run] = mechanism.randomize(TRUTH, entropy)
        return memory[run]

    return release
