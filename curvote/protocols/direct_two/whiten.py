"""Stage whiten: what a first round says of centre and covariance, made public."""

from __future__ import annotations

from collections.abc import Iterable

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.protocols.direct.aggregate import sum_reports
from curvote.protocols.direct.arms import decoding_metadata, directions_of
from curvote.server.directions import estimate_whitening


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the mechanism and budget that decoding needs."""
    return decoding_metadata(inputs["privatize"].metadata)


def one(context: StageContext) -> Rows:
    """Return the table ``whitening``: a row a coordinate of the second round's z."""
    return {
        "whitening": whitening_columns(
            context.shards("privatize", "directions"), context.metadata
        )
    }


def whitening_columns(reports: Iterable[Columns], public: Metadata) -> Columns:
    """Return table ``whitening`` from the shards of the first round's reports."""
    transform = estimate_whitening(
        sum_reports(reports), directions_of(public), public["epsilon"]
    )
    return {"matrix": transform.matrix, "centre": transform.centre}
