"""Labels that a model is given: plain ones, or codes that fit its parameters."""

from __future__ import annotations

from typing import Any

from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.labels.encoders import AUTO, mechanism_name
from curvote.labels.predicted import check_same_classes

LP_2ST = "lp_2st"
_SECOND_ROUND = "rr_with_prior"


def check_labels(y: Any, n: int) -> Any:
    """Return labels (n,), one a record; anything else is a UserError."""
    if y is None:
        raise UserError(
            "fit requires y to be passed, but the target y is None; give labels (n,)"
            " or Codes."
        )
    if not hasattr(getattr(y, "cat", y), "categories"):  # pandas' keep their order
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        if y.dtype.kind == "f":  # what a regression learns is no class
            check_classification_targets(y)
    if len(y) != n:
        raise UserError(f"X has {n} records, and y {len(y)} labels; each has one.")
    return y


def matching_codes(codes: Codes, classes: Any, epsilon: float, encoder: str) -> Codes:
    """Return the codes if they match the model's classes, epsilon and encoder.

    Otherwise a UserError that names both. ``auto`` takes the codes of any encoder.
    """
    if classes is not None:
        check_same_classes("model", classes, codes)
    if codes.epsilon != epsilon:
        raise UserError(
            f"the codes are of epsilon {codes.epsilon:g}, the model states"
            f" {epsilon:g}; give it the epsilon of its codes."
        )
    required = _SECOND_ROUND if encoder == LP_2ST else encoder
    if required in {AUTO, codes.encoder}:
        return codes
    if mechanism_name(required, codes.n_classes, epsilon) != codes.encoder:
        raise UserError(
            f"the codes are of encoder {codes.encoder}, the model states {encoder}."
        )
    return codes
