"""Stage aggregate of the join: reports and public records, read as a classifier."""

from __future__ import annotations

from curvote.chain.stage import Inputs, Metadata, Params, Rows, StageContext
from curvote.protocols.classifiers import classifier_columns
from curvote.protocols.direct.aggregate import decode_total, solving_rule, sum_reports
from curvote.protocols.direct.arms import decoding_metadata, directions_of
from curvote.server.joining import VolunteerRecords, joint_classifier


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the mechanism and budget that decoding needs."""
    return decoding_metadata(inputs["privatize"].metadata)


def one(context: StageContext) -> Rows:
    """Return the tables ``classifier``, of both, and ``reports_alone``."""
    records = context.rows("publish", "public_records")
    total = sum_reports(context.shards("privatize", "directions"))
    vectors = directions_of(context.metadata)
    public = VolunteerRecords.from_records(vectors, records["z"], records["label"])
    line = joint_classifier(total, vectors, context.metadata["epsilon"], public)
    return {
        "classifier": classifier_columns(line, total.n),
        "reports_alone": decode_total(
            total, context.metadata, solving_rule(context.params)
        ),
    }
