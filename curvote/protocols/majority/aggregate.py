"""Stage aggregate of `majority`: the class that most noised labels name, for ever."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.majority.elect import elect_class


def one(context: StageContext) -> Rows:
    """Return the table ``elected``: one row, the place of a class."""
    labels = context.rows("privatize", "labels")["label"]
    place = elect_class(labels, len(context.inputs["project"].metadata["classes"]))
    return {"elected": {"place": np.array([place]), "n": np.array([len(labels)])}}
