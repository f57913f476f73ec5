"""Stage fit: the model whose answers are to survive, from clean training records."""

from __future__ import annotations

from curvote.chain.stage import Here, Rows
from curvote.protocols.labels.packing import packed
from curvote.protocols.roles import played
from curvote.protocols.utility.columns import columns_of
from curvote.protocols.utility.fitting import fitted


def one(here: Here) -> Rows:
    """Return the table ``estimator``: one model, fitted on those who train."""
    clients = here.rows("ingest", "clients")
    columns = columns_of(here.inputs["ingest"].facts, here.params["record"])
    train = played(clients, here.params, here.number)["train"]
    seed = int(here.generator("fit").integers(1 << 31))
    X, y = columns.of(clients["curve"][train]), clients["label"][train]
    return {"estimator": {"model": packed(fitted(here.params["learner"], X, y, seed))}}
