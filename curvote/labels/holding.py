"""Search among classifiers by codes alone, and an honest score of what was chosen."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.labels.decoded import unbiased_rows
from curvote.labels.plain import TrueLabels
from curvote.labels.score import Z
from curvote.mechanisms.base import LabelMechanism

# An accuracy lies in [0, 1]: a wider interval than that says nothing.
_HALF_WIDTH = 0.5


def draw_holdout(
    codes: Codes, share: float, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return rows (h,) drawn for scoring: ``share`` of all, of unbiased codes only.

    Too few for any statement are a UserError that says how many labels it takes.
    """
    rows = np.flatnonzero(unbiased_rows(codes))
    holdout = rng.permutation(rows)[: round(share * len(codes))]
    refuse_small_holdout(len(holdout), len(codes), share, codes[:1].mechanism)
    return np.sort(holdout)


def refuse_small_holdout(
    size: int, n: int, share: float, mechanism: LabelMechanism | TrueLabels
) -> None:
    """Refuse (UserError) a share of ``n`` codes too small for any statement."""
    needed = min_holdout(mechanism)
    if size < needed:
        raise UserError(
            f"holdout is {share:g}: {size} of {n} labels. By {mechanism.name} for"
            f" {mechanism.n_classes} classes{_budget_text(mechanism)} it takes {needed}"
            " held-out labels to say anything of an accuracy,"
            f" {math.ceil(needed / share)} in all."
        )


def min_holdout(mechanism: LabelMechanism | TrueLabels) -> int:
    """Return how many codes make an accuracy's 95 % interval shorter than [0, 1].

    From the variance of one decoded code, and at most 1/4 of the label itself.
    """
    noise = 0.0
    if isinstance(mechanism, LabelMechanism):
        noise = float(mechanism.variance(np.zeros(1, dtype=np.int64)).max())
    return max(2, math.ceil((noise + 0.25) * (Z / _HALF_WIDTH) ** 2))


def _budget_text(mechanism: LabelMechanism | TrueLabels) -> str:
    if isinstance(mechanism, LabelMechanism):
        return f" at epsilon {mechanism.epsilon:g}"
    return ""
