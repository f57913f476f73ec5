"""Check of outputs that are impossible, or tell too much."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.audit.row import Finding
from curvote.audit.statistical import Pair
from curvote.audit.subject import Subject
from curvote.validate import FloatArray

# Sums of logarithms in float64 are off by some ulp.
SUPPORT_SLACK = 1e-9


def check_support(subject: Subject, pairs: Sequence[Pair]) -> Finding:
    """Check that each output is possible and loses at most epsilon."""
    for pair in pairs:
        for _, outputs, loss in pair.sides:
            why = _impossible_outputs(subject, outputs) or _excess_losses(subject, loss)
            if why:
                return Finding("support", why)
    return Finding("support")


def _impossible_outputs(subject: Subject, outputs: object) -> str | None:
    wrong = np.flatnonzero(~np.asarray(subject.possible(outputs), dtype=bool))
    if not wrong.size:
        return None
    row = subject.view(outputs)[wrong[0]]
    return (
        f"{wrong.size} outputs that the declared law gives for no input, the first is"
        f" {np.array2string(row[:4], threshold=4)}"
    )


def _excess_losses(subject: Subject, losses: FloatArray) -> str | None:
    """Check the declared loss of each output that was drawn, where delta is 0."""
    if subject.budget.delta:
        return None
    loss = np.abs(losses)
    # NaN is 0/0: an output that neither input can give.
    over = ~(loss <= subject.budget.epsilon + SUPPORT_SLACK)
    if not over.any():
        return None
    return f"an output was drawn whose declared loss is {loss[over][0]:.3f}"
