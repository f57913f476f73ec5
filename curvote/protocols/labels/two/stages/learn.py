"""Stage learn: priors of all other records, learnt from the first half's codes."""

from __future__ import annotations

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.labels.graphs import cell_learner
from curvote.protocols.labels.messages import PRIOR, RECORD
from curvote.protocols.labels.records import (
    codes_from_table,
    rows_by_name,
    rows_without_codes,
)
from curvote.protocols.labels.training import Records, fit_model


def one(context: StageContext) -> Rows:
    """Return the table ``priors``, of every record that no code is there of."""
    features, table = (
        context.rows("features", "features"),
        context.rows("privatize", "codes"),
    )
    names, values = features[RECORD], features["values"]
    other_rows = rows_without_codes(names, table[RECORD])
    codes = codes_from_table(context.inputs["privatize"].metadata, table)
    records = Records(
        values[rows_by_name(names, table[RECORD])], codes, values[other_rows]
    )
    seed = int(context.generator("learn").integers(2**31))
    classifier = fit_model(records, cell_learner(context), context.params, seed)
    prior = classifier.predict_proba(values[other_rows])
    return {"priors": {RECORD: names[other_rows], PRIOR: prior}}
