"""Stage aggregate of 1-of-K: a mean for each class, read as one classifier."""

from __future__ import annotations

from collections.abc import Iterable

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.protocols.classifiers import classifier_columns
from curvote.protocols.direct.aggregate import solving_rule
from curvote.protocols.direct.arms import decoding_metadata, directions_from_params
from curvote.server.named import BlockMeans, one_of_classifier
from curvote.shrinkage import MomentRule, solve_weights


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the mechanism and budget that decoding needs."""
    return decoding_metadata(inputs["privatize"].metadata)


def one(context: StageContext) -> Rows:
    """Return the table ``classifier``."""
    reports = context.shards("privatize", "named_directions")
    return {
        "classifier": decode_one_of(
            reports, context.metadata, solving_rule(context.params)
        )
    }


def decode_one_of(
    reports: Iterable[Columns], public: Metadata, rule: MomentRule = solve_weights
) -> Columns:
    """Return table ``classifier`` from shards of reports and what is public."""
    answers = ((shard["named"], shard["direction"]) for shard in reports)
    total = BlockMeans.from_shards(answers, public["n_classes"])
    directions = directions_from_params(public["d"], public["params"])
    return classifier_columns(
        one_of_classifier(total, directions, public["epsilon"], rule), total.n
    )
