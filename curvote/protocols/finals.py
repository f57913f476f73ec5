"""The model to keep of a run's cell: just what its scores were measured of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Place
from curvote.chain.view import View
from curvote.classifier import Linear
from curvote.curve_classifier import CurveClassifier
from curvote.protocols.classifiers import averaged, line_in
from curvote.protocols.mrma.tables import variant
from curvote.representation.encoding import Encoding

Line = tuple[NDArray[np.float64], float]
FIRST: Place = (0,)


def encoding_of(view: View, place: Place = FIRST) -> Encoding:
    """Return a cell's encoding, volunteers' constants and the feature map filled in."""
    rows = view.columns("project", "constants", place)
    constants = dict(zip(rows["name"], rows["value"], strict=True))
    described = Encoding.from_json(view.facts("project")["encoding"])
    judge = view.setting("project.judge")
    return replace(described, constants=constants, feature_map=judge)


def linear(view: View, line: Line, place: Place = FIRST) -> CurveClassifier:
    """Return a linear classifier of z as one of raw curves."""
    facts, encoding = view.facts("project"), encoding_of(view, place)
    made = Linear(*line, encoding.feature_map)
    grid = np.asarray(facts["grid"])
    return CurveClassifier.of(encoding, grid, made, facts["classes"])


def one(view: View) -> CurveClassifier:
    """Return the one classifier that the server decoded."""
    return linear(view, line_in(view.columns("aggregate", "classifier")))


def ensemble(view: View) -> CurveClassifier:
    """Return the average of the weak classifiers, reversed and weighted."""
    weak = variant(view.columns("train", "weak"), "weak")
    return linear(view, averaged(weak, view.columns("aggregate", "ensemble")))


def history(view: View) -> CurveClassifier:
    """Return the ensemble of the cell's arrival."""
    rows = view.columns("update", "history")
    return linear(view, (rows["coef"][-1], float(rows["intercept"][-1])))


def server(view: View) -> CurveClassifier:
    """Return what the first server has after the exchange."""
    place = (0, 0)
    offers = view.columns("exchange", "offers", place)
    made = view.columns("combine", "ensemble", place)
    kept = offers["accepted"]
    accepted = offers["coef"][kept], offers["intercept"][kept]
    return linear(view, averaged(accepted, made), place)
