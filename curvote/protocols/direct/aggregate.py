"""Stage aggregate of one round: the mean of all reports, read as a classifier."""

from __future__ import annotations

from collections.abc import Iterable

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.protocols.classifiers import classifier_columns
from curvote.protocols.direct.arms import decoding_metadata, directions_of
from curvote.server.directions import ReportMean, one_round_classifier
from curvote.server.gate import solve_with_fallback
from curvote.shrinkage import MomentRule, solve_weights


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the mechanism and budget that decoding needs."""
    return decoding_metadata(inputs["privatize"].metadata)


def one(context: StageContext) -> Rows:
    """Return the table ``classifier``: one row."""
    reports, rule = (
        context.shards("privatize", "directions"),
        solving_rule(context.params),
    )
    return {"classifier": decode_reports(reports, context.metadata, rule)}


def solving_rule(params: Params) -> MomentRule:
    """Return the rule that solves for a classifier, with or without fallback."""
    return solve_with_fallback if params["direct.gate"] else solve_weights


def decode_reports(
    reports: Iterable[Columns], public: Metadata, rule: MomentRule = solve_weights
) -> Columns:
    """Return table ``classifier`` from shards of ``directions`` and what is public."""
    return decode_total(sum_reports(reports), public, rule)


def decode_total(
    total: ReportMean, public: Metadata, rule: MomentRule = solve_weights
) -> Columns:
    """Return table ``classifier`` from the mean of all reports."""
    line = one_round_classifier(total, directions_of(public), public["epsilon"], rule)
    return classifier_columns(line, total.n)


def sum_reports(reports: Iterable[Columns]) -> ReportMean:
    """Return the mean of the reports in the shards of a table ``directions``."""
    return ReportMean.from_shards(shard["direction"] for shard in reports)
