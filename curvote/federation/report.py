"""Stage report of many servers: the true test error before and after the exchange."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Rows, StageContext
from curvote.classifier import decision_sign
from curvote.protocols.classifiers import average_ensemble
from curvote.protocols.scores import score_rows
from curvote.protocols.study import study_clients

SERVER_METHODS = ("mrma", "federated")


def one(context: StageContext) -> Rows:
    """Return the table ``scores``: a row for each server and method."""
    groups = context.inputs["project"].metadata["groups"]
    server_scores = [
        _score_server(context.at_place((*context.place, server)), str(group))
        for server, group in enumerate(groups)
    ]
    names = server_scores[0].keys()
    return {
        "scores": {
            n: np.concatenate([scores[n] for scores in server_scores]) for n in names
        }
    }


def _score_server(context: StageContext, group: str) -> Columns:
    """Return the scores of one server's clients."""
    clients = study_clients(context)
    features, labels = clients.features_and_signs(
        context.params["project.judge"], "test"
    )
    offers, joint = (
        context.rows("exchange", "offers"),
        context.rows("combine", "ensemble"),
    )
    own_ensemble = context.rows("aggregate", "ensemble")
    is_accepted = offers["accepted"]
    accepted = offers["coef"][is_accepted], offers["intercept"][is_accepted]
    coef, intercept = average_ensemble(accepted, joint)
    is_own = offers["sender"] == context.place[-1]
    slopes = np.vstack([offers["coef"][is_own], coef])
    decision = features @ slopes.T + [float(offers["intercept"][is_own][0]), intercept]
    errors = np.mean(decision_sign(decision) != labels[:, None], axis=0)
    passed = own_ensemble["none_passed"][0], joint["none_passed"][0]
    pairs = (
        dict(zip(SERVER_METHODS, values, strict=True)) for values in (errors, passed)
    )
    rows = score_rows(*pairs)["scores"]
    return rows | {"group": np.full(len(rows["method"]), group, dtype=object)}
