"""Model to keep of many servers: each one's classifier after the exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curvote.chain.stage import Place
from curvote.chain.view import View
from curvote.protocols.classifiers import average_ensemble
from curvote.protocols.finals import linear_model

if TYPE_CHECKING:
    from curvote.curve_classifier import CurveClassifier
    from curvote.federation.classifier import ServersClassifier


def servers_model(view: View) -> ServersClassifier:
    """Return the classifiers of all servers of replicate 0."""
    from curvote.federation.classifier import ServersClassifier  # see `linear_model`

    servers = range(len(view.metadata("project")["groups"]))
    return ServersClassifier([_server_model(view, (0, number)) for number in servers])


def _server_model(view: View, place: Place) -> CurveClassifier:
    offers = view.columns("exchange", "offers", place)
    ensemble = view.columns("combine", "ensemble", place)
    is_accepted = offers["accepted"]
    accepted = offers["coef"][is_accepted], offers["intercept"][is_accepted]
    return linear_model(view, average_ensemble(accepted, ensemble), place)
