"""Stage aggregate of `majority`: the class that most noised labels name, for ever."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Here, Rows
from curvote.protocols.majority.elect import elected


def one(here: Here) -> Rows:
    """Return the table ``elected``: one row, the place of a class."""
    sent = here.rows("privatize", "labels")["label"]
    place = elected(sent, len(here.inputs["project"].facts["classes"]))
    return {"elected": {"place": np.array([place]), "n": np.array([len(sent)])}}
