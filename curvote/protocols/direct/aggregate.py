"""Stage aggregate of one round: the mean of all reports, read as a classifier."""

from __future__ import annotations

from collections.abc import Iterable

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.protocols.classifiers import classifier
from curvote.protocols.direct.arms import given, handed_on
from curvote.server.directions import Sum, one_round
from curvote.server.gate import gated
from curvote.shrinkage import Rule, solve


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what decoding knows: the mechanism and its budget."""
    return handed_on(inputs["privatize"].facts)


def one(here: Here) -> Rows:
    """Return the table ``classifier``: one row."""
    reports, rule = here.shards("privatize", "directions"), rule_of(here.params)
    return {"classifier": decoded(reports, here.facts, rule)}


def rule_of(params: Params) -> Rule:
    """Return how what is known becomes a classifier: through the gate, or not."""
    return gated if params["direct.gate"] else solve


def decoded(reports: Iterable[Columns], public: Facts, rule: Rule = solve) -> Columns:
    """Return table ``classifier`` from shards of ``directions`` and what is public."""
    return of_total(total_of(reports), public, rule)


def of_total(total: Sum, public: Facts, rule: Rule = solve) -> Columns:
    """Return the same from the mean of all reports."""
    line = one_round(total, given(public), public["epsilon"], rule)
    return classifier(line, total.n)


def total_of(reports: Iterable[Columns]) -> Sum:
    """Return the mean of the reports in the shards of a table ``directions``."""
    return Sum.over(shard["direction"] for shard in reports)
