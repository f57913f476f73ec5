"""Stage aggregate of `majority`: the class that more noised labels name, for ever."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.protocols.classifiers import classifier
from curvote.protocols.majority.elect import elected


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return how many numbers the classifier takes without looking at them."""
    return {"d": inputs["privatize"].facts["d"]}


def one(here: Here) -> Rows:
    """Return the table ``classifier``: one row, its decision is -1 or +1."""
    sent = here.rows("privatize", "labels")["label"]
    line = np.zeros(here.facts["d"]), elected(sent)
    return {"classifier": classifier(line, len(sent))}
