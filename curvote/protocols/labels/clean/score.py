"""Stage report without privacy: a learner of labels as they are."""

from __future__ import annotations

import numpy as np

from curvote.chain.measure import SCORES
from curvote.chain.stage import Here, Rows
from curvote.labels.codes import Codes
from curvote.protocols.labels.graphs import learner_of
from curvote.protocols.labels.measured import judged, score_table
from curvote.protocols.labels.training import Records, model
from curvote.protocols.non_private.methods import CLEAN
from curvote.protocols.roles import played


def one(here: Here) -> Rows:
    """Return the table ``scores`` with the rows ``clean``."""
    clients, values = here.rows("ingest", "clients"), _values(here)
    roles = played(clients, here.params, here.number)
    classes = list(here.inputs["ingest"].facts["classes"])
    mine, tested = roles["train"], roles["test"]
    names = np.asarray(classes, dtype=object)
    codes = Codes.plain(names[clients["label"][mine]], names)
    seed = int(here.generator("train").integers(2**31))
    records = Records(values[mine], codes, values[tested])
    made = model(records, learner_of(here), here.params, seed)
    place = {name: at for at, name in enumerate(classes)}
    said = np.array([place[name] for name in made.predict(values[tested])])
    rows = judged(CLEAN.name, clients["label"][tested], said)
    return {SCORES.name: score_table(rows)}


def _values(here: Here) -> np.ndarray:
    return here.rows("features", "features")["values"]
