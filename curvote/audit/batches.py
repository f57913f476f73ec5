"""Whether a few clients get the noise of many: every size may take a path of its own."""

from __future__ import annotations

import numpy as np

from curvote.audit.interior import flat
from curvote.audit.row import Finding
from curvote.audit.subject import Subject
from curvote.entropy import Entropy

SIZES = (1, 5, 16, 17)
ROWS = 1500


def check(
    subject: Subject,
    rows: int,
    entropy: Entropy,
    rng: np.random.Generator,
    alpha: float,
) -> Finding:
    """Draw ``rows`` clients in calls of each size, and compare with the declared law.

    Wrong with probability ``alpha`` at most.
    """
    for size in SIZES:
        why = _fault(subject, size, rows, entropy, rng, alpha / len(SIZES))
        if why:
            return Finding("batches", f"in calls for {size} clients {why}")
    return Finding("batches")


def _fault(
    subject: Subject,
    size: int,
    rows: int,
    entropy: Entropy,
    rng: np.random.Generator,
    alpha: float,
) -> str | None:
    clients = subject.many(rows, rng)
    if clients is None:
        return None
    calls = [slice(start, start + size) for start in range(0, rows, size)]
    parts = [subject.send(subject.part(clients, call), entropy) for call in calls]
    outputs = subject.together(parts)
    if not np.asarray(subject.possible(outputs)).all():
        return "an output was drawn that the declared law gives for no input"
    found = subject.residuals(clients, outputs, rng)
    if found is None:
        return None
    gap = max(flat(column, alpha / found.shape[1]) for column in found.T)
    return f"the law is off by {gap:.2g} more than chance allows" if gap > 0 else None
