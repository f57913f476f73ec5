"""Stage aggregate of volunteers alone: regression on their records."""

from __future__ import annotations

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.protocols.classifiers import classifier
from curvote.server.volunteered import logistic


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return how many classes labels name."""
    return dict(inputs["publish"].facts)


def one(here: Here) -> Rows:
    """Return the table ``classifier``."""
    records = here.rows("publish", "public_records")
    line = logistic(records["z"], records["label"], here.facts["n_classes"])
    return {"classifier": classifier(line, len(records["label"]))}
