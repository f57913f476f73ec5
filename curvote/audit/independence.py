"""Check that clients share no noise."""

from __future__ import annotations

import numpy as np

from curvote.audit.bounds import proportion_bounds
from curvote.audit.row import Finding
from curvote.audit.subject import Subject
from curvote.chain.streams import CLIENT_BLOCK
from curvote.entropy import SystemEntropy
from curvote.validate import FloatArray

CLIENTS = 20_000
FEWEST = 1000


def check_independence(
    subject: Subject, x: object, outputs: object, alpha: float
) -> Finding:
    """Compare how often independent outputs agree.

    Clients with the same input ``x``: next to each other, a block of 65,536 apart in
    ``outputs``, and in two calls with fresh system entropy. They may agree as often as
    clients of two calls at other places; wrong with probability ``alpha`` at most.
    """
    n = min(CLIENTS, len(subject.view(outputs)))
    calls = [subject.view(subject.draw(x, n, SystemEntropy())) for _ in range(2)]
    first, second = calls
    batch = subject.view(outputs)
    reference = _agreement_count(first[:-7], second[7:])
    even = n // 2 * 2
    suspects = {
        "next to each other in one call": _agreement_count(
            first[0:even:2], first[1:even:2]
        ),
        "in two calls of one process": _agreement_count(first, second),
    }
    if len(batch) >= CLIENT_BLOCK + FEWEST:
        # Disjoint pairs, so that the agreements are independent draws.
        next_block = batch[CLIENT_BLOCK : 2 * CLIENT_BLOCK]
        suspects["65,536 clients apart"] = _agreement_count(
            next_block, batch[: len(next_block)]
        )
    suspect_alpha = alpha / (2 * len(suspects))
    for where, same in suspects.items():
        if _exceeds_chance(same, reference, suspect_alpha):
            why = f"clients {where} got equal outputs {same.mean():.3g} of the time"
            return Finding("independence", f"{why}, by chance {reference.mean():.3g}")
    return Finding("independence")


def _agreement_count(first: FloatArray, second: FloatArray) -> FloatArray:
    return np.asarray((first == second).all(axis=1), dtype=np.float64)


def _exceeds_chance(same: FloatArray, reference: FloatArray, alpha: float) -> bool:
    """Return whether agreement is proven to exceed chance."""
    low, _ = proportion_bounds(same.sum(), same.size, alpha)
    _, high = proportion_bounds(reference.sum(), reference.size, alpha)
    return bool(low > high)
