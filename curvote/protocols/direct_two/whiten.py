"""Stage whiten: what a first round says of centre and covariance, made public."""

from __future__ import annotations

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.protocols.direct.arms import given, handed_on
from curvote.server.directions import Sum, whitening


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what decoding knows: the mechanism and its budget."""
    return handed_on(inputs["privatize"].facts)


def one(here: Here) -> Rows:
    """Return the table ``whitening``: a row a coordinate of the second round's z."""
    return {"whitening": whitened(here.rows("privatize", "directions"), here.facts)}


def whitened(reports: Columns, public: Facts) -> Columns:
    """Return table ``whitening`` from the first round's table ``directions``."""
    total = Sum.of(reports["direction"])
    made = whitening(total, given(public), public["epsilon"])
    return {"matrix": made.matrix, "centre": made.centre}
