"""Stage aggregate of `majority`: the class that more noised labels name, for ever."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from curvote.chain.stage import Columns, Facts, Inputs, Params, Source
from curvote.protocols.classifiers import classifier
from curvote.protocols.majority.elect import elected
from curvote.protocols.stage import Tables


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return how many numbers the classifier takes without looking at them."""
    return {"d": inputs["privatize"].facts["d"]}


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``classifier``: one row, its decision is -1 or +1."""
    labels, d = inputs["privatize"], facts["d"]
    return {"classifier": [_constant(labels, r, d) for r in replicates]}


def _constant(source: Source, replicate: int, d: int) -> Columns:
    noised = source.columns("labels", replicate)["label"]
    return classifier((np.zeros(d), elected(noised)), len(noised))
