"""Check of draws against the declared law, over all inputs and for each input."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from curvote.audit.bounds import bernstein, proportion_bounds
from curvote.audit.row import Finding
from curvote.audit.statistical import Pair
from curvote.audit.subject import Subject
from curvote.mechanisms.base import ScalarMechanism
from curvote.validate import FloatArray

CUTS = (0.05, 0.25, 0.5, 0.75, 0.95)


def check_law(subject: Subject, pairs: Sequence[Pair], alpha: float) -> Finding:
    """Compare draws with the declared law; wrong with probability ``alpha`` at most."""
    pair_alpha, compared = alpha / (3 * len(pairs)), set[int]()
    for pair in pairs:
        # An input of several pairs has the same draws in all of them.
        fresh = [side for side in pair.sides if id(side[1]) not in compared]
        compared |= {id(outputs) for _, outputs, _ in fresh}
        gaps = (subject.law_gap(x, outputs, pair_alpha) for x, outputs, _ in fresh)
        why = next(filter(None, gaps), None) or _compare_tilted(pair, pair_alpha)
        if why:
            return Finding("law", why)
    return Finding("law")


def _compare_tilted(pair: Pair, alpha: float) -> str | None:
    """Compare P(A | x) with E[e^L 1_A | x2] for events A = {L <= t}, L the loss.

    They are equal for the declared law. Thresholds t come from the first third.
    """
    loss, loss2 = pair.loss, pair.loss2
    third = len(loss) // 3
    cuts = np.unique(np.quantile(loss2[:third], CUTS, method="higher"))
    cuts = cuts[np.isfinite(cuts) & (cuts < 30)]
    if not cuts.size:
        return None
    hits = loss[third:, None] <= cuts
    weights = np.exp(np.minimum(loss2[third:, None], cuts))
    weights *= loss2[third:, None] <= cuts
    event_alpha = alpha / (2 * cuts.size)
    margin = bernstein(weights, np.exp(cuts), event_alpha)
    low, high = proportion_bounds(hits.sum(axis=0), len(hits), event_alpha / 2)
    expected = weights.mean(axis=0)
    gap = np.maximum(low - expected, expected - high) - margin
    if not (gap > 0).any():
        return None
    worst = int(np.argmax(gap))
    return (
        f"P(declared loss <= {cuts[worst]:.3g}) differs by over {gap[worst]:.2g} from"
        " what the declared loss says"
    )


def share_gap(
    draws: FloatArray, outputs: FloatArray, declared: FloatArray, alpha: float
) -> str | None:
    """Return where an output's share departs from its probability, if at all.

    ``outputs`` [m] are the outputs, increasing, ``declared`` [m] their probabilities.
    """
    place = np.minimum(np.searchsorted(outputs, draws), len(outputs) - 1)
    if (outputs[place] != draws).any():
        return "an output was drawn that the channel does not name"
    hits = np.bincount(place, minlength=len(outputs))
    low, high = proportion_bounds(hits, len(draws), alpha / (2 * len(outputs)))
    slack = 1e-12  # declared probabilities are rounded to float64
    wrong = np.flatnonzero((declared < low - slack) | (declared > high + slack))
    if not wrong.size:
        return None
    i = wrong[0]
    share = hits[i] / len(draws)
    return f"output {outputs[i]:g} has share {share:.4g}, declared {declared[i]:.4g}"


def distribution_gap(
    mechanism: ScalarMechanism, x: FloatArray, draws: FloatArray, alpha: float
) -> str | None:
    """Return how far the distribution function is off, if it is.

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
