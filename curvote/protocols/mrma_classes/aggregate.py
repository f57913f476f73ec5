"""Stage aggregate of `mrma_classes`: MRMA's, of the classifiers of each class."""

from __future__ import annotations

from curvote.chain.stage import Here, Rows
from curvote.protocols.mrma.aggregate import ensemble, facts
from curvote.protocols.questions import apart, in_turn, one_against_rest

__all__ = ["facts", "one"]


def one(here: Here) -> Rows:
    """Return the table ``ensemble``; weights sum to 1 among those about one class."""
    n_questions = len(one_against_rest(len(here.inputs["project"].facts["classes"])))
    epsilon = here.inputs["evaluate"].facts["epsilon"]
    votes = here.rows("evaluate", "votes")
    each = [ensemble(own, epsilon, here.facts) for own in apart(votes, n_questions)]
    return {
        "ensemble": {name: in_turn([own[name] for own in each]) for name in each[0]}
    }
