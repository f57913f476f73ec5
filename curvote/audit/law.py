"""Whether the sampler follows the law that it declares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.audit.bounds import bernstein, proportion
from curvote.audit.row import Finding
from curvote.audit.statistical import Pair
from curvote.audit.subject import Subject
from curvote.validate import FloatArray

CUTS = (0.05, 0.25, 0.5, 0.75, 0.95)


def check(subject: Subject, pairs: Sequence[Pair], alpha: float) -> Finding:
    """Compare draws with the declared law; wrong with probability ``alpha`` at most."""
    each = alpha / (3 * len(pairs))
    for pair in pairs:
        why = (
            subject.law_gap(pair.x, pair.outputs, each)
            or subject.law_gap(pair.x2, pair.outputs2, each)
            or _tilted(subject, pair, each)
        )
        if why:
            return Finding("law", why)
    return Finding("law")


def _tilted(subject: Subject, pair: Pair, alpha: float) -> str | None:
    """Compare P(A | x) with E[e^L 1_A | x2] for events A = {L <= t}, L the loss.

    They are equal for the declared law. Thresholds t come from the first third.
    """
    one = subject.log_ratio(pair.x, pair.x2, pair.outputs)
    other = subject.log_ratio(pair.x, pair.x2, pair.outputs2)
    third = len(one) // 3
    cuts = np.unique(np.quantile(other[:third], CUTS, method="higher"))
    cuts = cuts[np.isfinite(cuts) & (cuts < 30)]
    if not cuts.size:
        return None
    hits = one[third:, None] <= cuts
    weights = np.exp(np.minimum(other[third:, None], cuts))
    weights *= other[third:, None] <= cuts
    each = alpha / (2 * cuts.size)
    margin = bernstein(weights, np.exp(cuts), each)
    low, high = proportion(hits.sum(axis=0), len(hits), each / 2)
    expected = weights.mean(axis=0)
    return _words(low - expected - margin, expected - margin - high, cuts)


def _words(below: FloatArray, above: FloatArray, cuts: FloatArray) -> str | None:
    gap = np.maximum(below, above)
    if not (gap > 0).any():
        return None
    worst = int(np.argmax(gap))
    return (
        f"P(declared loss <= {cuts[worst]:.3g}) differs by over {gap[worst]:.2g} from"
        " what the declared loss says"
    )
