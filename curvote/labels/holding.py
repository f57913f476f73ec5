"""The share of the codes that takes no part in choosing: how large, and which."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.labels.decoded import rows_without_bias
from curvote.labels.plain import Plain
from curvote.labels.score import Z
from curvote.mechanisms.base import LabelMechanism

# An accuracy lies in [0, 1]: a wider interval than that says nothing.
_HALF_WIDTH = 0.5


def held_out(codes: Codes, share: float, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return rows (h,) drawn for scoring: ``share`` of all, of unbiased codes only.

    Too few for any statement are a UserError that says how many labels it takes.
    """
    rows = np.flatnonzero(rows_without_bias(codes))
    taken = rng.permutation(rows)[: round(share * len(codes))]
    refuse_few(len(taken), len(codes), share, codes[:1].mechanism)
    return np.sort(taken)


def refuse_few(
    held: int, n: int, share: float, mechanism: LabelMechanism | Plain
) -> None:
    """Refuse a share of ``n`` codes that says nothing: ``held`` of them, UserError."""
    needed = fewest(mechanism)
    if held < needed:
        raise UserError(
            f"holdout is {share:g}: {held} of {n} labels. By {mechanism.name} for"
            f" {mechanism.n_classes} classes{_budget(mechanism)} it takes {needed}"
            " held-out labels to say anything of an accuracy,"
            f" {math.ceil(needed / share)} in all."
        )


def fewest(mechanism: LabelMechanism | Plain) -> int:
    """Return how many codes make a 95 % interval of an accuracy narrower than [0, 1].

    From the variance of one decoded code, and at most 1/4 of the label itself.
    """
    noise = 0.0
    if isinstance(mechanism, LabelMechanism):
        noise = float(mechanism.variance(np.zeros(1, dtype=np.int64)).max())
    return max(2, math.ceil((noise + 0.25) * (Z / _HALF_WIDTH) ** 2))


def _budget(mechanism: LabelMechanism | Plain) -> str:
    if isinstance(mechanism, LabelMechanism):
        return f" at epsilon {mechanism.epsilon:g}"
    return ""
