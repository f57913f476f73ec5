"""Check that a client's message does not move with the records of others.

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
from curvote.protocols.message import ClientData

OTHERS_CLIENTS = 400
RUNS = 5


def check_others(subject: SentSubject) -> Finding:
    """Draw for clients of whom every second record is replaced.

    Nothing is compared where candidates are rejected: there one client's record says
    which words the next ones get.
    """
    if subject.rejects:
        return Finding("others")
    moved = sum(_count_moved(subject, seed) for seed in range(RUNS))
    why = (
        f"{moved} of {RUNS * OTHERS_CLIENTS // 2} messages moved with the records of"
        " others"
    )
    return Finding("others", why if moved else None)


def _count_moved(subject: SentSubject, seed: int) -> int:
    """Return how many unchanged clients send something else."""
    data: ClientData = subject.many(OTHERS_CLIENTS, np.random.default_rng(seed))
    stay = np.arange(OTHERS_CLIENTS) % 2 == 0
    before, after = (
        subject.view(subject.send(many, SeededEntropy(seed)))[stay]
        for many in (data, _move_to_corner(data, ~stay))
    )
    return int((before != after).any(axis=1).sum())


def _move_to_corner(data: ClientData, rows: NDArray[np.bool_]) -> ClientData:
    """Return the clients with the records of ``rows`` at one corner."""
    there = rows[:, None]
    return replace(
        data,
        coefficients=np.where(there, 1.0, data.coefficients),
        z=np.where(there, 1.0, data.z),
        labels=np.where(rows, 0, data.labels),
    )
