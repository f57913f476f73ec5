"""Stage aggregate of two rounds: both label moments, read as one classifier."""

from __future__ import annotations

from collections.abc import Iterable

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.protocols.classifiers import classifier_columns
from curvote.protocols.direct.aggregate import solving_rule, sum_reports
from curvote.protocols.direct.arms import decoding_metadata, directions_of
from curvote.representation.direction import Whitening
from curvote.server.directions import two_round_classifier
from curvote.shrinkage import MomentRule, solve_weights


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the mechanism and budget that decoding needs."""
    return decoding_metadata(inputs["refine"].metadata)


def one(context: StageContext) -> Rows:
    """Return the table ``classifier``: one row."""
    first = context.shards("privatize", "directions")
    second = context.shards("refine", "directions")
    whitening_rows = context.rows("whiten", "whitening")
    rule = solving_rule(context.params)
    return {
        "classifier": decode_two_rounds(
            first, second, whitening_rows, context.metadata, rule
        )
    }


def decode_two_rounds(
    first: Iterable[Columns],
    second: Iterable[Columns],
    whitening: Columns,
    public: Metadata,
    rule: MomentRule = solve_weights,
) -> Columns:
    """Return table ``classifier`` from both rounds' shards and what is public."""
    sums = sum_reports(first), sum_reports(second)
    transform = Whitening(whitening["matrix"], whitening["centre"])
    line = two_round_classifier(
        sums, transform, directions_of(public), public["epsilon"], rule
    )
    return classifier_columns(line, sums[0].n + sums[1].n)
