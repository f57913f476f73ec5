"""Stage train of two rounds: a model from the codes of both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from curvote.chain.stage import Here, Rows
from curvote.protocols.labels.messages import RECORD
from curvote.protocols.labels.records import codes_of, priors_of
from curvote.protocols.labels.stages.train import trained


def one(here: Here) -> Rows:
    """Return the tables of stage train; the first round's prior says nothing."""
    early, late = here.rows("privatize", "codes"), here.rows("again", "codes")
    first = codes_of(here.inputs["privatize"].facts, early)
    prior = priors_of(here, late[RECORD])
    second = codes_of(here.inputs["again"].facts, late, prior)
    both = replace(
        second,
        values=np.concatenate([first.values, second.values]),
        prior=np.concatenate([np.ones((len(first), first.n_classes)), prior]),
    )
    return trained(here, np.concatenate([early[RECORD], late[RECORD]]), both)
