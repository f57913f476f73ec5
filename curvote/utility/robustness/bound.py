"""Lower bound on agreement from a certified box."""

from __future__ import annotations

import numpy as np

from curvote.mechanisms.law import Mixture
from curvote.utility.channel import Channel
from curvote.utility.robustness.box import Box
from curvote.validate import FloatArray

# Of theta: an output at exactly that distance counts, whatever the rounding.
_ROUNDING = 1e-12


def certified_bound(channel: Channel, values: FloatArray, box: Box) -> FloatArray:
    """Return P(the model sees a point of the certified box), (n,).

    Outputs that are clipped to the bounds count where they are moved to. 0 where no
    box is certified; NaN where the channel's law is no mixture of products.
    """
    law = channel.law(values)
    if law is None:
        return np.full(len(values), np.nan)
    return np.where(box.certified, law.box(box.low, box.high), 0.0)


def concentration_probability(law: Mixture, x: FloatArray, theta: float) -> FloatArray:
    """Return P(every coordinate of the output is within ``theta`` of x), (n,).

    ``x`` is (n, d), in the law's units (Zheng & Hu, proposition 1 and figure 4).
    """
    reach = theta * (1 + _ROUNDING)
    return law.box(x - reach, x + reach)
