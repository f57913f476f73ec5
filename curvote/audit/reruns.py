"""Check of repeated requests: a client must release the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.audit.row import Finding
from curvote.privacy import Budget
from curvote.validate import FloatArray

CALLS = 1000


@dataclass(frozen=True, eq=False)
class Memo:
    """A release of one client's record that claims to spend ``budget`` once.

    ``release(seed)`` returns the function that is called 1,000 times; ``truth`` is what
    a release without noise would be.
    """

    name: str
    params: Mapping[str, Any]
    budget: Budget
    truth: FloatArray
    release: Callable[[int], Callable[[], FloatArray]]


def check_reruns(
    release: Callable[[], NDArray[np.float64]], truth: FloatArray, budget: Budget
) -> Finding:
    """Release one record 1,000 times: k different outputs cost k budgets.

    ``release`` returns what leaves the client as an array of ``truth``'s shape; how
    near the mean of all outputs comes to ``truth`` is reported as evidence.
    """
    outputs = np.stack([np.asarray(release(), dtype=float) for _ in range(CALLS)])
    distinct = len(np.unique(outputs.reshape(CALLS, -1), axis=0))
    if distinct == 1:
        return Finding("reruns")
    noise = float(np.abs(outputs[0] - truth).max())
    mean = float(np.abs(outputs.mean(axis=0) - truth).max())
    return Finding(
        "reruns",
        f"{distinct} different outputs in {CALLS} runs spend at least"
        f" epsilon {distinct * budget.epsilon:g}, not {budget.epsilon:g}: one output is"
        f" {noise:.3g} from the truth, their mean {mean:.3g}",
    )
