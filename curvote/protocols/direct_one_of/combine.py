"""Stage aggregate of 1-of-K: a mean for each class, read as one classifier."""

from __future__ import annotations

from collections.abc import Iterable

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.protocols.classifiers import classifier
from curvote.protocols.direct.aggregate import rule_of
from curvote.protocols.direct.arms import from_params, handed_on
from curvote.server.named import Blocks, one_of_round
from curvote.shrinkage import Rule, solve


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what decoding knows: the mechanism and its budget."""
    return handed_on(inputs["privatize"].facts)


def one(here: Here) -> Rows:
    """Return the table ``classifier``."""
    reports = here.shards("privatize", "named_directions")
    return {"classifier": decoded(reports, here.facts, rule_of(here.params))}


def decoded(reports: Iterable[Columns], public: Facts, rule: Rule = solve) -> Columns:
    """Return table ``classifier`` from shards of reports and what is public."""
    each = ((shard["named"], shard["direction"]) for shard in reports)
    total = Blocks.over(each, public["n_classes"])
    given = from_params(public["d"], public["params"])
    return classifier(one_of_round(total, given, public["epsilon"], rule), total.n)
