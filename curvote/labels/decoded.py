"""Decoded codes as a score takes them: unbiased, with less noise than they come."""

from __future__ import annotations

import numpy as np

from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.validate import FloatArray


def unbiased(codes: Codes) -> FloatArray:
    """Return unbiased estimates of the one-hot labels whose rows sum to 1, (n, K).

    A one-hot row sums to 1, so what a decoded row has beyond is noise: sharing it out
    takes no mean away, and for two classes of `unary_symmetric` half of the variance.
    """
    decoded = codes.decode()
    beyond = decoded.sum(axis=1, keepdims=True) - 1
    return np.asarray(decoded - beyond / codes.n_classes)


def without_bias(codes: Codes) -> bool:
    """Say whether decoding is unbiased: always, or as all priors are uniform."""
    if codes.prior is None:
        return codes.mechanism.unbiased
    return bool((codes.prior == codes.prior[:, :1]).all())


def refuse_biased(codes: Codes) -> None:
    """Refuse codes that say nothing of labels that a prior held unlikely."""
    if not without_bias(codes):
        raise UserError(
            f"the codes are of encoder {codes.encoder}, which is biased: a score needs"
            " codes of another, or of rows whose prior is uniform."
        )
