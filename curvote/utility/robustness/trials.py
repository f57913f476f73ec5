"""Boxes of black boxes: uniform queries, and an exact binomial instead of a proof."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from curvote.entropy import Entropy
from curvote.utility.engines.base import Question
from curvote.utility.robustness.asked import Asked
from curvote.utility.robustness.box import Bits, Box, ball, grown, inscribed, radius
from curvote.validate import FloatArray

# What a tested box is found to, a share of the bounds' widths, as in the paper.
PRECISION = 0.01


@dataclass(frozen=True)
class Trial:
    """How a box is tried: ``number`` uniform points, of which ``most`` may differ.

    After ``trials`` of a record no further box is accepted.
    """

    number: int
    most: int
    trials: float = math.inf


def trial(tolerance: float, risk: float, trials: int) -> Trial:
    """Return the fewest points whose agreement shows that at most ``tolerance`` differ.

    Where more differ, all agree with probability (1 - tolerance)^number at most
    (Clopper & Pearson 1934); that is ``risk`` over all ``trials``. For .01, .05 and one
    trial it takes 299 points.
    """
    number = math.log(risk / trials) / math.log1p(-tolerance)
    return Trial(math.ceil(number), 0, trials)


def box_by_trials(
    question: Question,
    entropy: Entropy,
    *,
    tolerance: float = 0.01,
    risk: float = 0.05,
    precision: float = PRECISION,
) -> Box:
    """Return boxes in which at most ``tolerance`` of all points get another answer.

    That is true of every box that was accepted for a record with probability
    1 - ``risk``. It speaks of points that are uniform in the box, not of a mechanism:
    nothing is certified, and no bound follows.
    """
    halvings = math.ceil(-math.log2(precision))
    trials = halvings * (1 + 4 * len(question.bounds))
    how = trial(tolerance, risk, trials)
    return tried(question, entropy, how, precision)


def tried(
    question: Question, entropy: Entropy, how: Trial, precision: float, **how_far: float
) -> Box:
    """Return the boxes that pass a trial each time that they grow (``grown``)."""
    asked, values = Asked(question, entropy), question.values
    bounds = question.bounds
    inner = np.clip(values, *bounds.T)
    left = np.full(len(values), how.trials)

    def holds(low: FloatArray, high: FloatArray, which: Bits) -> Bits:
        held, places = (
            np.zeros(len(low), dtype=bool),
            np.flatnonzero(which & (left > 0)),
        )
        left[places] -= 1
        wrong = asked.wrong(places, low[places], high[places], how.number)
        held[places] = wrong <= how.most
        return held

    balls = ball(inner, radius(holds, inner, bounds, precision), bounds)
    ends = grown(holds, balls, bounds, precision, **how_far)
    reach = inscribed(ends, inner, bounds)
    never = np.zeros(len(values), dtype=bool)
    return Box(reach, ends[..., 0], ends[..., 1], never, asked.queries)
