"""What a model is given as labels: plain ones, or codes that fit what it states."""

from __future__ import annotations

from typing import Any

from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.labels.encoders import AUTO, concrete
from curvote.labels.predicted import same_classes

LP_2ST = "lp_2st"
_OF_ROUNDS = "rr_with_prior"


def plain_labels(y: Any, n: int) -> Any:
    """Return labels (n,), one a record, for `places_of` to judge; else UserError."""
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


def fitting(codes: Codes, classes: Any, epsilon: float, encoder: str) -> Codes:
    """Return codes that are of the model's classes, epsilon and encoder.

    Otherwise a UserError that names both. ``auto`` takes the codes of any encoder.
    """
    if classes is not None:
        same_classes("model", classes, codes)
    if codes.epsilon != epsilon:
        raise UserError(
            f"the codes are of epsilon {codes.epsilon:g}, the model states"
            f" {epsilon:g}; give it the epsilon of its codes."
        )
    wanted = _OF_ROUNDS if encoder == LP_2ST else encoder
    if wanted in {AUTO, codes.encoder}:
        return codes
    if concrete(wanted, codes.n_classes, epsilon) != codes.encoder:
        raise UserError(
            f"the codes are of encoder {codes.encoder}, the model states {encoder}."
        )
    return codes
