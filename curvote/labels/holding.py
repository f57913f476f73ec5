"""The share of the codes that takes no part in choosing: how large, and which."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.labels.decoded import rows_without_bias
from curvote.labels.scoring import Z
from curvote.mechanisms.base import LabelMechanism

# An accuracy lies in [0, 1]: a wider interval than that says nothing.
_HALF_WIDTH = 0.5


def held_out(codes: Codes, share: float, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return rows (h,) drawn for scoring: ``share`` of all, of unbiased codes only.

    Too few for any statement are a UserError that says how many labels it takes.
    """
    wanted = round(validate.fraction(holdout=share) * len(codes))
    rows = np.flatnonzero(rows_without_bias(codes))
    taken = np.sort(rng.permutation(rows)[:wanted])
    needed = fewest(codes)
    if len(taken) < needed:
        raise UserError(
            f"holdout is {share:g}: {len(taken)} of {len(codes)} labels. At epsilon"
            f" {codes.epsilon:g}, {codes.n_classes} classes and encoder"
            f" {codes.encoder} it takes {needed} held-out labels to say anything of an"
            f" accuracy, {math.ceil(needed / share)} in all."
        )
    return taken


def fewest(codes: Codes) -> int:
    """Return how many codes make a 95 % interval of an accuracy narrower than [0, 1].

    From the variance of one decoded code, and at most 1/4 of the label itself.
    """
    mechanism = codes[:1].mechanism
    noise = 0.0
    if isinstance(mechanism, LabelMechanism):
        noise = float(mechanism.variance(np.zeros(1, dtype=np.int64)).max())
    return max(2, math.ceil((noise + 0.25) * (Z / _HALF_WIDTH) ** 2))
