"""Stage aggregate: the server's descent along the reports, and its later iterates."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.protocols.classifiers import classifier
from curvote.protocols.sgd.messages import from_params
from curvote.server.gradient import averaged, stepped


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what descending takes: the first task, the budget and the rate."""
    public = inputs["descend"].facts
    return {name: public[name] for name in ("d", "epsilon", "params", "rate")}


def one(here: Here) -> Rows:
    """Return the table ``classifier``: one row."""
    return {"classifier": decoded(here.rows("descend", "gradients"), here.facts)}


def decoded(reports: Columns, public: Facts) -> Columns:
    """Return table ``classifier`` from table ``gradients`` and what is public."""
    given, iterates = from_params(public["d"], public["params"]), []
    for number in np.unique(reports["round"]).tolist():
        batch = reports["gradient"][reports["round"] == number]
        given = stepped(given, batch, public["epsilon"], public["rate"], number)
        iterates.append(given)
    return classifier(averaged(iterates).line(), len(reports["round"]))
