"""Whether a client's message moves with the records of others: what is asked is public.

Constants that others' records made, such as quantiles for edges, tell of these records,
and no noise hides that. From the same words a client must send the same bytes whoever
else is there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from curvote.audit.row import Finding
from curvote.audit.sent_subject import SentSubject
from curvote.entropy import SeededEntropy
from curvote.protocols.message import Known

CLIENTS = 400
RUNS = 5


def check(subject: SentSubject) -> Finding:
    """Draw for clients of whom every second has another record, from the same words.

    Nothing is compared where candidates are rejected: there one client's record says
    which words the next ones get.
    """
    if subject.rejects:
        return Finding("others")
    moved = sum(_moved(subject, seed) for seed in range(RUNS))
    why = f"{moved} of {RUNS * CLIENTS // 2} messages moved with the records of others"
    return Finding("others", why if moved else None)


def _moved(subject: SentSubject, seed: int) -> int:
    """Return how many of those who stay as they are send something else."""
    known: Known = subject.many(CLIENTS, np.random.default_rng(seed))
    stay = np.arange(CLIENTS) % 2 == 0
    before, after = (
        subject.view(subject.send(many, SeededEntropy(seed)))[stay]
        for many in (known, _cornered(known, ~stay))
    )
    return int((before != after).any(axis=1).sum())


def _cornered(known: Known, rows: NDArray[np.bool_]) -> Known:
    """Return the same clients, but for those who all stand at one corner now."""
    there = rows[:, None]
    return replace(
        known,
        coefficients=np.where(there, 1.0, known.coefficients),
        z=np.where(there, 1.0, known.z),
        labels=np.where(rows, 0, known.labels),
    )
