"""Final model of a cell: the model whose answers were quantified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curvote.chain.view import View
from curvote.protocols.finals import linear_model, record_columns
from curvote.protocols.labels.packing import unpack_model
from curvote.protocols.utility.columns import record_columns as asked_of

if TYPE_CHECKING:
    from curvote.curve_classifier import CurveClassifier
    from curvote.protocols.utility.kept import RecordClassifier


def final_model(view: View) -> RecordClassifier:
    """Return the model of the first repetition, of the source's own columns."""
    from curvote.protocols.utility.kept import RecordClassifier  # scikit-learn

    facts = view.metadata("ingest")
    model = unpack_model(view.columns("fit", "estimator")["model"][0])
    places = list(asked_of(facts, view.setting("record")).places)
    names = record_columns(view, "ingest")
    return RecordClassifier(names, places, model, list(facts["classes"]))


def final_rule(view: View) -> CurveClassifier:
    """Return the rule on coefficients of the first repetition, as one of raw curves."""
    model = unpack_model(view.columns("fit", "estimator")["model"][0])
    return linear_model(view, (model.weights, float(model.intercept)))
