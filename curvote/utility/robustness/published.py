"""The guarantee as it was published, whose figure is called claimed: no lower bound.

Its boxes are tested with points that are uniform in them, and a mechanism's outputs
are not: with ``pm_01``, epsilon 8 and x = .5, an answer that changes on .006 next to x
is within the tolerance of a radius of .3. The guarantee then is .934, and the answer
survives in .672.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from curvote.entropy import Entropy
from curvote.utility.channel import Channel
from curvote.utility.engines.base import Question
from curvote.utility.robustness.box import Box
from curvote.utility.robustness.trials import TRIAL_PRECISION, TrialRule, grow_by_trials
from curvote.validate import FloatArray

# Zheng & Hu, definition 8: the share of wrong answers that a box may have, and the
# risk of a test. It is taken seven times for a radius, at the same risk each.
TAU = 0.01
OMEGA = 0.05


def query_count(omega: float = OMEGA, tau: float = TAU / 2) -> int:
    """Return ln(2/omega) / (2 tau^2), rounded up (theorem 1): 73,778."""
    return math.ceil(math.log(2 / omega) / (2 * tau * tau))


def published_boxes(
    question: Question, entropy: Entropy, *, first_step: float = 0.25
) -> Box:
    """Return the boxes of the published procedure (section 5.1).

    A box passes where at most tau/2 of 73,778 uniform points get another answer; the
    radius takes seven tests, 516,446 queries, and with ``first_step`` 0 it is all.
    ``certified`` is false throughout.
    """
    number = query_count()
    trial_rule = TrialRule(number, math.floor(number * TAU / 2))
    return grow_by_trials(
        question, entropy, trial_rule, TRIAL_PRECISION, first_step=first_step
    )


def published_claim(channel: Channel, values: FloatArray, box: Box) -> FloatArray:
    """Return the published claim (1 - omega)(1 - tau) P(noise in box), (n,).

    Outputs beyond the bounds are lost, though the model would see them clipped. The
    paper's figures leave the two factors away, .9405 together. NaN where the
    mechanism's law is no mixture of products.
    """
    law = replace(channel, clip=False).law(values)
    if law is None:
        return np.full(len(values), np.nan)
    return (1 - OMEGA) * (1 - TAU) * law.box(box.low, box.high)
