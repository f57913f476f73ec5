"""Whether clients share noise: then differences of outputs give inputs away."""

from __future__ import annotations

import numpy as np

from curvote.audit.bounds import proportion
from curvote.audit.row import Finding
from curvote.audit.subject import Subject
from curvote.chain.streams import CLIENT_BLOCK
from curvote.entropy import SystemEntropy
from curvote.validate import FloatArray

CLIENTS = 20_000
FEWEST = 1000


def check(subject: Subject, x: object, outputs: object, alpha: float) -> Finding:
    """Compare how often outputs agree that should be independent.

    Clients with the same input ``x``: next to each other, a block of 65,536 apart in
    ``outputs``, and in two calls with fresh system entropy. They may agree as often as
    clients of two calls at other places; wrong with probability ``alpha`` at most.
    """
    n = min(CLIENTS, len(subject.view(outputs)))
    calls = [subject.view(subject.draw(x, n, SystemEntropy())) for _ in range(2)]
    one, other = calls
    batch = subject.view(outputs)
    reference = _agree(one[:-7], other[7:])
    even = n // 2 * 2
    suspects = {
        "next to each other in one call": _agree(one[0:even:2], one[1:even:2]),
        "in two calls of one process": _agree(one, other),
    }
    if len(batch) >= CLIENT_BLOCK + FEWEST:
        # Disjoint pairs, so that the agreements are independent draws.
        next_block = batch[CLIENT_BLOCK : 2 * CLIENT_BLOCK]
        suspects["65,536 clients apart"] = _agree(next_block, batch[: len(next_block)])
    each = alpha / (2 * len(suspects))
    for where, same in suspects.items():
        if _more(same, reference, each):
            why = f"clients {where} got equal outputs {same.mean():.3g} of the time"
            return Finding("independence", f"{why}, by chance {reference.mean():.3g}")
    return Finding("independence")


def _agree(one: FloatArray, other: FloatArray) -> FloatArray:
    return np.asarray((one == other).all(axis=1), dtype=np.float64)


def _more(same: FloatArray, reference: FloatArray, alpha: float) -> bool:
    """Say whether agreement is proved to be more frequent than by chance."""
    low, _ = proportion(same.sum(), same.size, alpha)
    _, high = proportion(reference.sum(), reference.size, alpha)
    return bool(low > high)
