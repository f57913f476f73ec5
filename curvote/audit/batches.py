"""Check that a few clients get the same noise as many."""

from __future__ import annotations

from typing import Any

import numpy as np

from curvote.audit.interior import uniformity_gap
from curvote.audit.row import Finding
from curvote.audit.subject import Subject
from curvote.entropy import Entropy
from curvote.validate import FloatArray

SIZES = (1, 5, 16, 17)
# Half the noise moves residuals by 1/4: 400 show that, at an error rate of 1e-8 and 3.7
# standard deviations above what is allowed. An audit of few draws has no more.
FEW_ROWS, ROWS = 400, 1500
FEW = 5000


def check_batches(
    subject: Subject,
    samples: int,
    entropy: Entropy,
    rng: np.random.Generator,
    alpha: float,
) -> Finding:
    """Draw ``ROWS`` clients in calls of each size, and compare with the law.

    Wrong with probability ``alpha`` at most.
    """
    rows = ROWS if samples >= FEW else FEW_ROWS
    for size in SIZES:
        clients = subject.many(rows, rng)
        calls = [slice(start, start + size) for start in range(0, rows, size)]
        parts = [subject.send(subject.part(clients, call), entropy) for call in calls]
        outputs = subject.together(parts)
        why = _batch_fault(
            subject, outputs, subject.residuals(clients, outputs, rng), alpha
        )
        if why:
            return Finding("batches", f"in calls for {size} clients {why}")
    return Finding("batches")


def _batch_fault(
    subject: Subject, outputs: Any, residuals: FloatArray | None, alpha: float
) -> str | None:
    if not np.asarray(subject.possible(outputs)).all():
        return "an output was drawn that the declared law gives for no input"
    return None if residuals is None else uniformity_gap(residuals, alpha / len(SIZES))
