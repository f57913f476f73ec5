"""Whether the sampler follows the law that it declares: in all, and input by input."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from curvote.audit.bounds import bernstein, proportion
from curvote.audit.row import Finding
from curvote.audit.statistical import Pair
from curvote.audit.subject import Subject
from curvote.mechanisms.base import ScalarMechanism
from curvote.validate import FloatArray

CUTS = (0.05, 0.25, 0.5, 0.75, 0.95)


def check(subject: Subject, pairs: Sequence[Pair], alpha: float) -> Finding:
    """Compare draws with the declared law; wrong with probability ``alpha`` at most."""
    each, compared = alpha / (3 * len(pairs)), set[int]()
    for pair in pairs:
        # An input of several pairs has the same draws in all of them.
        fresh = [side for side in pair.sides if id(side[1]) not in compared]
        compared |= {id(outputs) for _, outputs, _ in fresh}
        gaps = (subject.law_gap(x, outputs, each) for x, outputs, _ in fresh)
        why = next(filter(None, gaps), None) or _tilted(pair, each)
        if why:
            return Finding("law", why)
    return Finding("law")


def _tilted(pair: Pair, alpha: float) -> str | None:
    """Compare P(A | x) with E[e^L 1_A | x2] for events A = {L <= t}, L the loss.

    They are equal for the declared law. Thresholds t come from the first third.
    """
    one, other = pair.loss, pair.loss2
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
    gap = np.maximum(low - expected, expected - high) - margin
    if not (gap > 0).any():
        return None
    worst = int(np.argmax(gap))
    return (
        f"P(declared loss <= {cuts[worst]:.3g}) differs by over {gap[worst]:.2g} from"
        " what the declared loss says"
    )


def cells(
    draws: FloatArray, known: FloatArray, declared: FloatArray, alpha: float
) -> str | None:
    """Say where the share of an output is not its declared probability, if anywhere.

    ``known`` [m] are the outputs, increasing, ``declared`` [m] their probabilities.
    """
    place = np.minimum(np.searchsorted(known, draws), len(known) - 1)
    if (known[place] != draws).any():
        return "an output was drawn that the channel does not name"
    hits = np.bincount(place, minlength=len(known))
    low, high = proportion(hits, len(draws), alpha / (2 * len(known)))
    slack = 1e-12  # declared probabilities are rounded to float64
    wrong = np.flatnonzero((declared < low - slack) | (declared > high + slack))
    if not wrong.size:
        return None
    i = wrong[0]
    share = hits[i] / len(draws)
    return f"output {known[i]:g} has share {share:.4g}, declared {declared[i]:.4g}"


def distance(
    mechanism: ScalarMechanism, x: FloatArray, draws: FloatArray, alpha: float
) -> str | None:
    """Say how far the distribution function is off, if it is.

    Dvoretzky-Kiefer-Wolfowitz with Massart's constant (1990), jumps included.
    """
    at, counts = np.unique(draws, return_counts=True)
    reached = np.cumsum(counts) / draws.size
    below = mechanism.cdf(x, np.nextafter(at, -np.inf))
    gap = max(
        np.abs(reached - mechanism.cdf(x, at)).max(),
        np.abs(reached - counts / draws.size - below).max(),
    )
    if gap <= math.sqrt(math.log(2 / alpha) / (2 * draws.size)):
        return None
    return f"for input {float(x):.3g} the distribution function is off by {gap:.3g}"
