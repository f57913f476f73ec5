"""The model to keep of many servers: what each has after the exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curvote.chain.stage import Place
from curvote.chain.view import View
from curvote.protocols.classifiers import averaged
from curvote.protocols.finals import linear

if TYPE_CHECKING:
    from curvote.curve_classifier import CurveClassifier
    from curvote.federation.classifier import ServersClassifier


def final(view: View) -> ServersClassifier:
    """Return the servers' classifiers of replicate 0 as one."""
    from curvote.federation.classifier import ServersClassifier  # see `linear`

    servers = range(len(view.facts("project")["groups"]))
    return ServersClassifier([_of_server(view, (0, number)) for number in servers])


def _of_server(view: View, place: Place) -> CurveClassifier:
    offers = view.columns("exchange", "offers", place)
    made = view.columns("combine", "ensemble", place)
    kept = offers["accepted"]
    accepted = offers["coef"][kept], offers["intercept"][kept]
    return linear(view, averaged(accepted, made), place)
