"""Stage report of many servers: the true test error before and after the exchange."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.classifier import sign
from curvote.protocols.stage import Columns, Facts, Inputs, Params, Tables
from curvote.protocols.study import study_clients
from curvote.server.averaging import average

METHODS = ("mrma", "federated")


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the name under which the cell's rows stand."""
    return {"protocol": params["label"], "learner": params["learner.label"]}


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``scores``: a row for each server, method and replicate."""
    return {"scores": [_scores(r, inputs, params) for r in replicates]}


def _scores(replicate: int, inputs: Inputs, params: Params) -> Columns:
    servers = params["servers"]
    groups = inputs["project"].facts["groups"]
    instances = range(replicate * servers, (replicate + 1) * servers)
    found = [_server(i, i % servers, inputs, params) for i in instances]
    n = servers * len(METHODS)
    return {
        "protocol": np.full(n, params["label"], dtype=object),
        "epsilon": np.full(n, params["epsilon"]),
        "learner": np.full(n, params["learner.label"], dtype=object),
        "method": np.array([*METHODS] * servers, dtype=object),
        "misclassification": np.concatenate([errors for errors, _ in found]),
        "none_passed": np.concatenate([none for _, none in found]),
        "group": np.repeat(np.array([str(g) for g in groups], object), len(METHODS)),
    }


def _server(
    instance: int, server: int, inputs: Inputs, params: Params
) -> tuple[np.ndarray, np.ndarray]:
    """Return error and ``none_passed`` of each method, for one server's clients."""
    clients = study_clients(inputs["project"], params, instance)
    features, labels = clients.judged(params["project.judge"], "test")
    offers = inputs["exchange"].columns("offers", instance)
    own = inputs["aggregate"].columns("ensemble", instance)
    joint = inputs["combine"].columns("ensemble", instance)
    kept, turn = offers["accepted"], np.where(joint["reversed"], -1.0, 1.0)
    coef, intercept = average(
        offers["coef"][kept], offers["intercept"][kept], turn * joint["weight"]
    )
    mine = offers["server"] == server
    slopes = np.vstack([offers["coef"][mine], coef])
    decision = features @ slopes.T + [float(offers["intercept"][mine][0]), intercept]
    errors = np.mean(sign(decision) != labels[:, None], axis=0)
    return errors, np.array([own["none_passed"][0], joint["none_passed"][0]])
