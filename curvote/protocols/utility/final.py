"""What a run keeps of a cell: the model whose answers were quantified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curvote.chain.view import View
from curvote.protocols.finals import columns_of, linear
from curvote.protocols.labels.packing import unpacked
from curvote.protocols.utility.columns import columns_of as asked_of

if TYPE_CHECKING:
    from curvote.curve_classifier import CurveClassifier
    from curvote.protocols.utility.kept import RecordClassifier


def final(view: View) -> RecordClassifier:
    """Return the model of the first repetition, of the source's own columns."""
    from curvote.protocols.utility.kept import RecordClassifier  # scikit-learn

    facts = view.facts("ingest")
    model = unpacked(view.columns("fit", "estimator")["model"][0])
    places = list(asked_of(facts, view.setting("record")).places)
    names = columns_of(view, "ingest")
    return RecordClassifier(names, places, model, list(facts["classes"]))


def rule(view: View) -> CurveClassifier:
    """Return the rule on coefficients of the first repetition, as one of raw curves."""
    model = unpacked(view.columns("fit", "estimator")["model"][0])
    return linear(view, (model.weights, float(model.intercept)))
