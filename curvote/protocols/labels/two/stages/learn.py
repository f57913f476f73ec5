"""Stage learn: what the first half's codes say is likely of all other records."""

from __future__ import annotations

from curvote.chain.stage import Here, Rows
from curvote.protocols.labels.graphs import learner_of
from curvote.protocols.labels.messages import PRIOR, RECORD
from curvote.protocols.labels.records import codes_of, rows_of, without
from curvote.protocols.labels.training import Records, model


def one(here: Here) -> Rows:
    """Return the table ``priors``, of every record that no code is there of."""
    features, sent = here.rows("features", "features"), here.rows("privatize", "codes")
    names, values = features[RECORD], features["values"]
    others = without(names, sent[RECORD])
    codes = codes_of(here.inputs["privatize"].facts, sent)
    records = Records(values[rows_of(names, sent[RECORD])], codes, values[others])
    seed = int(here.generator("learn").integers(2**31))
    made = model(records, learner_of(here), here.params, seed)
    prior = made.predict_proba(values[others])
    return {"priors": {RECORD: names[others], PRIOR: prior}}
