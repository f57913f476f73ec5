"""Stage whiten: what a first round says of centre and covariance, made public."""

from __future__ import annotations

from collections.abc import Iterable

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.protocols.direct.aggregate import total_of
from curvote.protocols.direct.arms import given, handed_on
from curvote.server.directions import whitening


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what decoding knows: the mechanism and its budget."""
    return handed_on(inputs["privatize"].facts)


def one(here: Here) -> Rows:
    """Return the table ``whitening``: a row a coordinate of the second round's z."""
    return {"whitening": whitened(here.shards("privatize", "directions"), here.facts)}


def whitened(reports: Iterable[Columns], public: Facts) -> Columns:
    """Return table ``whitening`` from the shards of the first round's reports."""
    made = whitening(total_of(reports), given(public), public["epsilon"])
    return {"matrix": made.matrix, "centre": made.centre}
