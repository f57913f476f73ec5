"""Report stage of a study: the true test error of every method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.classifier import decision_sign
from curvote.protocols.mrma import published
from curvote.protocols.mrma.tables import lines_of_variant
from curvote.protocols.scores import TestClients, score_rows
from curvote.protocols.study import study_clients
from curvote.server.averaging import average_classifiers
from curvote.server.reversal import reversed_utility

Array = NDArray[np.float64]
# Utilities of equal vote counts differ by rounding errors, others by far more.
TIE_TOLERANCE = 1e-9


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the definitions of the methods."""
    return {"definitions": params["report.definitions"]}


def one(context: StageContext) -> Rows:
    """Return the table ``scores``: one row for each method."""
    test = TestClients(
        *study_clients(context).features_and_signs(
            context.params["project.judge"], "test"
        )
    )
    weak, ensemble = (
        context.rows("train", "weak"),
        context.rows("aggregate", "ensemble"),
    )
    errors = mean_errors(test, weak, ensemble) | ensemble_errors(test, weak, ensemble)
    errors |= pooled_errors(test, weak)
    if context.metadata["definitions"] == "published":
        cutoff = context.inputs["aggregate"].metadata["cutoff"]
        errors |= published_errors(test, weak, ensemble, cutoff)
    return score_rows(errors, none_passed_flags(ensemble))


def none_passed_flags(ensemble: Columns) -> dict[str, bool]:
    """Return whether no classifier passed the cutoff, with and without reversal."""
    return {"mrma": ensemble["none_passed"][0], "ma": ensemble["none_passed_ma"][0]}


def mean_errors(
    test: TestClients, weak: Columns, ensemble: Columns
) -> dict[str, float]:
    """Return the mean errors ``weak`` and ``mr``: before and after reversal."""
    decisions = test.decisions(*lines_of_variant(weak, "weak"))
    signed_decisions = np.where(ensemble["reversed"], -decisions, decisions)
    return {
        "weak": float(test.error(decisions).mean()),
        "mr": float(test.error(signed_decisions).mean()),
    }


def ensemble_errors(
    test: TestClients, weak: Columns, ensemble: Columns
) -> dict[str, float]:
    """Return the error of each method that averages the weak classifiers."""
    signs = np.where(ensemble["reversed"], -1.0, 1.0)
    weights_by_method = {
        "ma": ensemble["weight_ma"],
        "mrma": signs * ensemble["weight"],
        "best_single": signs * best_single_weights(ensemble),
    }
    lines = lines_of_variant(weak, "weak")
    return {
        name: _line_error(test, average_classifiers(*lines, w))
        for name, w in weights_by_method.items()
    }


def pooled_errors(test: TestClients, weak: Columns) -> dict[str, float]:
    """Return the error of each method that learns from all reports."""
    lines = lines_of_variant(weak, "pooled")
    equal = np.full(len(lines[0]), 1 / len(lines[0]))
    vote_sums = decision_sign(test.decisions(*lines)).sum(axis=1)
    return {
        "voting": float(test.error(vote_sums[:, None])[0]),
        "averaging": _line_error(test, average_classifiers(*lines, equal)),
        "all_data": _line_error(
            test, average_classifiers(*lines_of_variant(weak, "all_data"), np.ones(1))
        ),
    }


def _line_error(test: TestClients, line: tuple[Array, float]) -> float:
    decision = test.decisions(line[0], np.atleast_1d(line[1]))
    return float(test.error(decision)[0])


def published_errors(
    test: TestClients, weak: Columns, ensemble: Columns, cutoff: float
) -> dict[str, float]:
    """Return the errors of the methods that MRMA's tables define in another way."""
    decisions = test.decisions(*lines_of_variant(weak, "weak"))
    signed_decisions = np.where(ensemble["reversed"], -decisions, decisions)
    votes = decision_sign(test.decisions(*lines_of_variant(weak, "pooled")))
    return {
        "weak": published.published_weak_error(ensemble["utility"]),
        "mr": published.published_mr_error(
            test.error(signed_decisions), _reversed_utilities(ensemble), cutoff
        ),
        "voting": published.published_voting_error(votes, test.labels),
    }


def _reversed_utilities(ensemble: Columns) -> Array:
    return reversed_utility(ensemble["utility"], ensemble["reversed"])


def best_single_weights(ensemble: Columns) -> Array:
    """Return weight 1 for the first classifier of highest utility."""
    utility, weights = _reversed_utilities(ensemble), np.zeros(len(ensemble["utility"]))
    weights[np.argmax(utility > utility.max() - TIE_TOLERANCE)] = 1
    return weights
