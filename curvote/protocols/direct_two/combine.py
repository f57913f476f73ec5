"""Stage aggregate of two rounds: both label moments, read as one classifier."""

from __future__ import annotations

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.protocols.classifiers import classifier
from curvote.protocols.direct.aggregate import rule_of
from curvote.protocols.direct.arms import given, handed_on
from curvote.representation.direction import Whitening
from curvote.server.directions import Sum, two_rounds
from curvote.shrinkage import Rule, solve


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what decoding knows: the mechanism and its budget."""
    return handed_on(inputs["refine"].facts)


def one(here: Here) -> Rows:
    """Return the table ``classifier``: one row."""
    first = here.rows("privatize", "directions")
    second = here.rows("refine", "directions")
    made = here.rows("whiten", "whitening")
    rule = rule_of(here.params)
    return {"classifier": decoded(first, second, made, here.facts, rule)}


def decoded(
    first: Columns,
    second: Columns,
    whitening: Columns,
    public: Facts,
    rule: Rule = solve,
) -> Columns:
    """Return table ``classifier`` from both rounds' tables and what is public."""
    sums = Sum.of(first["direction"]), Sum.of(second["direction"])
    made = Whitening(whitening["matrix"], whitening["centre"])
    line = two_rounds(sums, made, given(public), public["epsilon"], rule)
    return classifier(line, sums[0].n + sums[1].n)
