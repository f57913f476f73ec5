"""Stage aggregate of `mrma_classes`: MRMA's, of the classifiers of each class."""

from __future__ import annotations

from curvote.chain.stage import Rows, StageContext
from curvote.protocols.mrma.aggregate import ensemble_columns, facts
from curvote.protocols.questions import (
    interleave_questions,
    one_against_rest_code,
    split_questions,
)

__all__ = ["facts", "one"]


def one(context: StageContext) -> Rows:
    """Return the table ``ensemble``; weights sum to 1 among those about one class."""
    n_questions = len(
        one_against_rest_code(len(context.inputs["project"].metadata["classes"]))
    )
    epsilon = context.inputs["evaluate"].metadata["epsilon"]
    votes = context.rows("evaluate", "votes")
    ensembles = [
        ensemble_columns(columns, epsilon, context.metadata)
        for columns in split_questions(votes, n_questions)
    ]
    return {
        "ensemble": {
            name: interleave_questions([columns[name] for columns in ensembles])
            for name in ensembles[0]
        }
    }
