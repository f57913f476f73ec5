"""Stage aggregate of the join: reports and public records, read as a classifier."""

from __future__ import annotations

from curvote.chain.stage import Facts, Here, Inputs, Params, Rows
from curvote.protocols.classifiers import classifier
from curvote.protocols.direct.aggregate import of_total, rule_of, total_of
from curvote.protocols.direct.arms import given, handed_on
from curvote.server.joining import Public, joined


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return what decoding knows: the mechanism and its budget."""
    return handed_on(inputs["privatize"].facts)


def one(here: Here) -> Rows:
    """Return the tables ``classifier``, of both, and ``reports_alone``."""
    records = here.rows("publish", "public_records")
    total = total_of(here.shards("privatize", "directions"))
    vectors = given(here.facts)
    public = Public.of(vectors, records["z"], records["label"])
    line = joined(total, vectors, here.facts["epsilon"], public)
    return {
        "classifier": classifier(line, total.n),
        "reports_alone": of_total(total, here.facts, rule_of(here.params)),
    }
