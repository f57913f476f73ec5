"""Stage report of many servers: the true test error before and after the exchange."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Here, Rows
from curvote.classifier import sign
from curvote.protocols.classifiers import averaged
from curvote.protocols.scores import score_rows
from curvote.protocols.study import clients_of

METHODS = ("mrma", "federated")


def one(here: Here) -> Rows:
    """Return the table ``scores``: a row for each server and method."""
    groups = here.inputs["project"].facts["groups"]
    found = [
        _server(here.at((*here.place, server)), str(group))
        for server, group in enumerate(groups)
    ]
    names = found[0].keys()
    return {"scores": {n: np.concatenate([own[n] for own in found]) for n in names}}


def _server(here: Here, group: str) -> Columns:
    """Return the scores of one server's clients."""
    clients = clients_of(here)
    features, labels = clients.judged(here.params["project.judge"], "test")
    offers, joint = here.rows("exchange", "offers"), here.rows("combine", "ensemble")
    own = here.rows("aggregate", "ensemble")
    kept = offers["accepted"]
    accepted = offers["coef"][kept], offers["intercept"][kept]
    coef, intercept = averaged(accepted, joint)
    mine = offers["sender"] == here.place[-1]
    slopes = np.vstack([offers["coef"][mine], coef])
    decision = features @ slopes.T + [float(offers["intercept"][mine][0]), intercept]
    errors = np.mean(sign(decision) != labels[:, None], axis=0)
    passed = own["none_passed"][0], joint["none_passed"][0]
    pairs = (dict(zip(METHODS, each, strict=True)) for each in (errors, passed))
    rows = score_rows(*pairs)["scores"]
    return rows | {"group": np.full(len(rows["method"]), group, dtype=object)}
