"""Stage report without privacy: a learner of labels as they are."""

from __future__ import annotations

import numpy as np

from curvote.chain.measure import SCORES
from curvote.chain.stage import Rows, StageContext
from curvote.labels.codes import Codes
from curvote.protocols.labels.graphs import cell_learner
from curvote.protocols.labels.measured import score_predictions, score_table
from curvote.protocols.labels.training import Records, fit_model
from curvote.protocols.non_private.methods import CLEAN
from curvote.protocols.roles import roles_of_table


def one(context: StageContext) -> Rows:
    """Return the table ``scores`` with the rows ``clean``."""
    clients, values = context.rows("ingest", "clients"), _feature_values(context)
    roles = roles_of_table(clients, context.params, context.number)
    classes = list(context.inputs["ingest"].metadata["classes"])
    training_rows, tested = roles["train"], roles["test"]
    names = np.asarray(classes, dtype=object)
    codes = Codes.plain(names[clients["label"][training_rows]], names)
    seed = int(context.generator("train").integers(2**31))
    records = Records(values[training_rows], codes, values[tested])
    classifier = fit_model(records, cell_learner(context), context.params, seed)
    place = {name: at for at, name in enumerate(classes)}
    predictions = np.array([place[name] for name in classifier.predict(values[tested])])
    rows = score_predictions(CLEAN.name, clients["label"][tested], predictions)
    return {SCORES.name: score_table(rows)}


def _feature_values(context: StageContext) -> np.ndarray:
    return context.rows("features", "features")["values"]
