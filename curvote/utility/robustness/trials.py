"""Boxes of black boxes: uniform queries, and an exact binomial instead of a proof."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from curvote.entropy import Entropy
from curvote.utility.engines.base import Question
from curvote.utility.robustness.asked import BoxTester
from curvote.utility.robustness.box import (
    Box,
    Mask,
    ball_boxes,
    bisect_radius,
    grow_boxes,
    inscribed_radius,
)
from curvote.validate import FloatArray

# What a tested box is found to, a share of the bounds' widths, as in the paper.
TRIAL_PRECISION = 0.01


@dataclass(frozen=True)
class TrialRule:
    """Rule of a trial: ``number`` uniform points, of which ``most`` may differ.

    After ``trials`` of a record no further box is accepted.
    """

    number: int
    most: int
    trials: float = math.inf


def make_trial(tolerance: float, risk: float, trials: int) -> TrialRule:
    """Return the fewest points that show that at most ``tolerance`` differ.

    Where more differ, all agree with probability (1 - tolerance)^number at most
    (Clopper & Pearson 1934); that is ``risk`` over all ``trials``. For .01, .05 and one
    trial it takes 299 points.
    """
    number = math.log(risk / trials) / math.log1p(-tolerance)
    return TrialRule(math.ceil(number), 0, trials)


def box_by_trials(
    question: Question,
    entropy: Entropy,
    *,
    tolerance: float = 0.01,
    risk: float = 0.05,
    precision: float = TRIAL_PRECISION,
) -> Box:
    """Return boxes in which at most ``tolerance`` of all points get another answer.

    That is true of every box that was accepted for a record with probability
    1 - ``risk``. It speaks of points that are uniform in the box, not of a mechanism:
    nothing is certified, and no bound follows.
    """
    halvings = math.ceil(-math.log2(precision))
    trials = halvings * (1 + 4 * len(question.bounds))
    trial_rule = make_trial(tolerance, risk, trials)
    return grow_by_trials(question, entropy, trial_rule, precision)


def grow_by_trials(
    question: Question,
    entropy: Entropy,
    trial_rule: TrialRule,
    precision: float,
    **how_far: float,
) -> Box:
    """Return the boxes that pass a trial each time that they grow."""
    tester, values = BoxTester(question, entropy), question.values
    bounds = question.bounds
    inner = np.clip(values, *bounds.T)
    remaining = np.full(len(values), trial_rule.trials)

    def passes(low: FloatArray, high: FloatArray, which: Mask) -> Mask:
        passed, places = (
            np.zeros(len(low), dtype=bool),
            np.flatnonzero(which & (remaining > 0)),
        )
        remaining[places] -= 1
        wrong = tester.wrong(places, low[places], high[places], trial_rule.number)
        passed[places] = wrong <= trial_rule.most
        return passed

    balls = ball_boxes(inner, bisect_radius(passes, inner, bounds, precision), bounds)
    ends = grow_boxes(passes, balls, bounds, precision, **how_far)
    reach = inscribed_radius(ends, inner, bounds)
    never = np.zeros(len(values), dtype=bool)
    return Box(reach, ends[..., 0], ends[..., 1], never, tester.queries)
