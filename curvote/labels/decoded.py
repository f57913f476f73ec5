"""Scores of a model from noised codes alone: unbiased, with their standard errors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.validate import FloatArray


def decode_unbiased(codes: Codes) -> FloatArray:
    """Return unbiased estimates of the one-hot labels whose rows sum to 1, (n, K).

    A one-hot row sums to 1, so what a decoded row has beyond is noise: sharing it out
    takes no mean away, and for two classes of `unary_symmetric` half of the variance.
    """
    decoded = codes.decode()
    excess = decoded.sum(axis=1, keepdims=True) - 1
    return np.asarray(decoded - excess / codes.n_classes)


def unbiased_rows(codes: Codes) -> NDArray[np.bool_]:
    """Return which codes decode without bias, (n,): with a prior, if it is even."""
    if codes.prior is None:
        return np.full(len(codes), codes.mechanism.unbiased)
    prior = np.atleast_2d(codes.prior)
    even = (prior == prior[:, :1]).all(axis=1)
    return np.broadcast_to(even, len(codes))


def refuse_biased_codes(codes: Codes) -> None:
    """Refuse codes that decode with bias: drawn by a prior that is not even."""
    if not unbiased_rows(codes).all():
        raise UserError(
            f"the codes are of encoder {codes.encoder}, which is biased: a score needs"
            " those of another, or of clients whose prior is even."
        )
