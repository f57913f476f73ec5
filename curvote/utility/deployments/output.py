"""Randomised response on the classifier's own answer: clients run the model."""

from __future__ import annotations

import numpy as np

from curvote.mechanisms.k_rr import KRR
from curvote.utility.engines.base import Answers
from curvote.utility.measured import exact_answers
from curvote.utility.setting import Places


def randomized_answers(clean: Places, n_classes: int, epsilon: float) -> Answers:
    """Return the answers after k-ary randomised response with all of ``epsilon``.

    The clean one survives with probability e^epsilon / (e^epsilon + K - 1), rounded
    towards privacy as the mechanism is.
    """
    mechanism = KRR(epsilon=epsilon, n_classes=n_classes)
    channel = mechanism.probabilities(np.arange(n_classes))
    return exact_answers(channel[clean], 1)
