"""Stage aggregate: the server's descent along the reports, and its later iterates."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.protocols.classifiers import classifier
from curvote.protocols.sgd.messages import from_params, start
from curvote.server.gradient import averaged, stepped


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what descending takes beside the reports: all of it is public."""
    public = inputs["descend"].facts
    names = ("d", "n_classes", "epsilon", "params")
    return {name: public[name] for name in names} | {"rate": params["sgd.rate"]}


def one(here: Here) -> Rows:
    """Return the table ``classifier``: one row, or one for each class."""
    return {"classifier": decoded(here.rows("descend", "gradients"), here.facts)}


def decoded(reports: Columns, public: Facts) -> Columns:
    """Return table ``classifier`` from table ``gradients`` and what is public."""
    first = start(public["d"], public["n_classes"])
    given = from_params(public["d"], public["params"] | {"coef": first})
    iterates, rounds = [], np.unique(reports["round"]).tolist()
    for number in rounds:
        batch = reports["gradient"][reports["round"] == number]
        given = stepped(given, batch, public["epsilon"], public["rate"])
        iterates.append(given)
    return classifier(averaged(iterates).line(), len(reports["round"]))
