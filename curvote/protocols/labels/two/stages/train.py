"""Stage train of two rounds: a model from the codes of both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.labels.messages import RECORD
from curvote.protocols.labels.records import codes_from_table, record_priors
from curvote.protocols.labels.stages.train import train_on_codes


def one(context: StageContext) -> Rows:
    """Return the tables of stage train; the first round's prior says nothing."""
    early, late = context.rows("privatize", "codes"), context.rows("again", "codes")
    first = codes_from_table(context.inputs["privatize"].metadata, early)
    prior = record_priors(context, late[RECORD])
    second = codes_from_table(context.inputs["again"].metadata, late, prior)
    codes = replace(
        second,
        values=np.concatenate([first.values, second.values]),
        prior=np.concatenate([np.ones((len(first), first.n_classes)), prior]),
    )
    return train_on_codes(context, np.concatenate([early[RECORD], late[RECORD]]), codes)
