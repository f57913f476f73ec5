"""Stage report of a study: the true test error of every method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.classifier import sign
from curvote.protocols.mrma import published
from curvote.protocols.mrma.tables import variant
from curvote.protocols.scores import Test, score_rows
from curvote.protocols.study import clients_of
from curvote.server.averaging import average
from curvote.server.reversal import reversed_utility

Array = NDArray[np.float64]
# Utilities of equal vote counts differ by rounding errors, others by far more.
TIE = 1e-9


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return how the methods are defined."""
    return {"definitions": params["report.definitions"]}


def one(here: Here) -> Rows:
    """Return the table ``scores``: one row for each method."""
    test = Test(*clients_of(here).judged(here.params["project.judge"], "test"))
    weak, ensemble = here.rows("train", "weak"), here.rows("aggregate", "ensemble")
    errors = single(test, weak, ensemble) | own(test, weak, ensemble)
    errors |= pooled(test, weak)
    if here.facts["definitions"] == "published":
        cutoff = here.inputs["aggregate"].facts["cutoff"]
        errors |= as_published(test, weak, ensemble, cutoff)
    return score_rows(errors, none_passed(ensemble))


def none_passed(ensemble: Columns) -> dict[str, bool]:
    """Return whether no classifier passed the cutoff, with and without reversal."""
    return {"mrma": ensemble["none_passed"][0], "ma": ensemble["none_passed_ma"][0]}


def single(test: Test, weak: Columns, ensemble: Columns) -> dict[str, float]:
    """Return ``weak`` and ``mr``: the mean error before and after reversal."""
    decisions = test.decisions(*variant(weak, "weak"))
    turned = np.where(ensemble["reversed"], -decisions, decisions)
    return {
        "weak": float(test.error(decisions).mean()),
        "mr": float(test.error(turned).mean()),
    }


def own(test: Test, weak: Columns, ensemble: Columns) -> dict[str, float]:
    """Return the error of each method that makes one classifier of the weak ones."""
    turn = np.where(ensemble["reversed"], -1.0, 1.0)
    shares = {
        "ma": ensemble["weight_ma"],
        "mrma": turn * ensemble["weight"],
        "best_single": turn * best(ensemble),
    }
    drawn = variant(weak, "weak")
    return {name: _error(test, average(*drawn, w)) for name, w in shares.items()}


def pooled(test: Test, weak: Columns) -> dict[str, float]:
    """Return the error of each method that learns from everybody's report."""
    pool = variant(weak, "pooled")
    equal = np.full(len(pool[0]), 1 / len(pool[0]))
    votes = sign(test.decisions(*pool)).sum(axis=1)
    return {
        "voting": float(test.error(votes[:, None])[0]),
        "averaging": _error(test, average(*pool, equal)),
        "all_data": _error(test, average(*variant(weak, "all_data"), np.ones(1))),
    }


def _error(test: Test, line: tuple[Array, float]) -> float:
    decision = test.decisions(line[0], np.atleast_1d(line[1]))
    return float(test.error(decision)[0])


def as_published(
    test: Test, weak: Columns, ensemble: Columns, cutoff: float
) -> dict[str, float]:
    """Return the errors of the methods that MRMA's tables define in another way."""
    decisions = test.decisions(*variant(weak, "weak"))
    turned = np.where(ensemble["reversed"], -decisions, decisions)
    votes = sign(test.decisions(*variant(weak, "pooled")))
    return {
        "weak": published.weak(ensemble["utility"]),
        "mr": published.mr(test.error(turned), _reversed(ensemble), cutoff),
        "voting": published.voting(votes, test.labels),
    }


def _reversed(ensemble: Columns) -> Array:
    return reversed_utility(ensemble["utility"], ensemble["reversed"])


def best(ensemble: Columns) -> Array:
    """Return weight 1 for the highest utility after reversal, the first of ties."""
    utility, best = _reversed(ensemble), np.zeros(len(ensemble["utility"]))
    best[np.argmax(utility > utility.max() - TIE)] = 1
    return best
