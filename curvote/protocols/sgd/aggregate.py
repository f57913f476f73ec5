"""Stage aggregate: the server's descent along the reports, and its later iterates."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.protocols.classifiers import classifier_columns
from curvote.protocols.sgd.messages import gradients_from_params, start_coefficients
from curvote.server.gradient import average_iterates, gradient_step


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the public parameters of the descent."""
    public = inputs["descend"].metadata
    names = ("d", "n_classes", "epsilon", "params")
    return {name: public[name] for name in names} | {"rate": params["sgd.rate"]}


def one(context: StageContext) -> Rows:
    """Return the table ``classifier``: one row, or one for each class."""
    return {
        "classifier": decode_gradients(
            context.rows("descend", "gradients"), context.metadata
        )
    }


def decode_gradients(reports: Columns, public: Metadata) -> Columns:
    """Return table ``classifier`` from table ``gradients`` and what is public."""
    start_coef = start_coefficients(public["d"], public["n_classes"])
    gradients = gradients_from_params(
        public["d"], public["params"] | {"coef": start_coef}
    )
    iterates, rounds = [], np.unique(reports["round"]).tolist()
    for number in rounds:
        batch = reports["gradient"][reports["round"] == number]
        gradients = gradient_step(gradients, batch, public["epsilon"], public["rate"])
        iterates.append(gradients)
    return classifier_columns(average_iterates(iterates).line(), len(reports["round"]))
