"""Stage aggregate of two rounds: both label moments, read as one classifier."""

from __future__ import annotations

from collections.abc import Iterable

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.protocols.classifiers import classifier
from curvote.protocols.direct.aggregate import rule_of, total_of
from curvote.protocols.direct.arms import given, handed_on
from curvote.representation.direction import Whitening
from curvote.server.directions import two_rounds
from curvote.shrinkage import Rule, solve


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what decoding knows: the mechanism and its budget."""
    return handed_on(inputs["refine"].facts)


def one(here: Here) -> Rows:
    """Return the table ``classifier``: one row."""
    first = here.shards("privatize", "directions")
    second = here.shards("refine", "directions")
    made = here.rows("whiten", "whitening")
    rule = rule_of(here.params)
    return {"classifier": decoded(first, second, made, here.facts, rule)}


def decoded(
    first: Iterable[Columns],
    second: Iterable[Columns],
    whitening: Columns,
    public: Facts,
    rule: Rule = solve,
) -> Columns:
    """Return table ``classifier`` from both rounds' shards and what is public."""
    sums = total_of(first), total_of(second)
    made = Whitening(whitening["matrix"], whitening["centre"])
    line = two_rounds(sums, made, given(public), public["epsilon"], rule)
    return classifier(line, sums[0].n + sums[1].n)
