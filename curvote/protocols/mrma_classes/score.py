"""Stage report of a study of `mrma_classes`: the true test error of every method.

A weak classifier tells one class from the rest, so the methods `weak` and `mr` are of K
of them together, one of each class.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Here, Rows
from curvote.classifier import sign
from curvote.protocols.classifiers import named
from curvote.protocols.mrma.score import best
from curvote.protocols.mrma.tables import variant
from curvote.protocols.questions import (
    Lines,
    apart,
    combined,
    in_turn,
    one_against_rest,
)
from curvote.protocols.scores import score_rows
from curvote.protocols.study import clients_of

Array = NDArray[np.float64]
Tested = tuple[Array, NDArray[np.int64]]


def one(here: Here) -> Rows:
    """Return the table ``scores``: one row for each method."""
    test = clients_of(here).tested(here.params["project.judge"])
    code = one_against_rest(len(here.inputs["project"].facts["classes"]))
    weak, ensemble = here.rows("train", "weak"), here.rows("aggregate", "ensemble")
    errors = own(test, code, weak, ensemble) | pooled(test, code, weak)
    return score_rows(errors, none_passed(ensemble))


def none_passed(ensemble: Columns) -> dict[str, bool]:
    """Return whether no classifier of any class passed, with and without reversal."""
    names = {"mrma": "none_passed", "ma": "none_passed_ma"}
    return {method: bool(ensemble[name].all()) for method, name in names.items()}


def own(test: Tested, code: Array, weak: Columns, made: Columns) -> dict[str, float]:
    """Return the error of each method of the weak classifiers that were voted on."""
    lines, turn = variant(weak, "weak"), np.where(made["reversed"], -1.0, 1.0)
    chosen = in_turn([best(rows) for rows in apart(made, len(code))])
    shares = {
        "ma": made["weight_ma"],
        "mrma": turn * made["weight"],
        "best_single": turn * chosen,
    }
    found = {name: _error(test, code, lines, w) for name, w in shares.items()}
    found["weak"] = _mean_error(test, code, lines, np.ones(len(turn)))
    return found | {"mr": _mean_error(test, code, lines, turn)}


def pooled(test: Tested, code: Array, weak: Columns) -> dict[str, float]:
    """Return the error of each method that learns from everybody's report."""
    pool, whole = variant(weak, "pooled"), variant(weak, "all_data")
    equal = np.ones(len(pool[0]))
    votes = sign(test[0] @ pool[0].T + pool[1]).reshape(len(test[0]), -1, len(code))
    said = (votes.sum(axis=1) @ code).argmax(axis=1)
    return {
        "voting": float(np.mean(said != test[1])),
        "averaging": _error(test, code, pool, equal),
        "all_data": _error(test, code, whole, np.ones(len(code))),
    }


def _mean_error(test: Tested, code: Array, lines: Lines, turn: Array) -> float:
    """Return the mean error of rules of one classifier of each class."""
    rules = np.split(np.arange(len(turn)), len(turn) // len(code))
    each = [_error(test, code, (lines[0][r], lines[1][r]), turn[r]) for r in rules]
    return float(np.mean(each))


def _error(test: Tested, code: Array, lines: Lines, weights: Array) -> float:
    said = named(test[0], *combined(code, lines, weights))
    return float(np.mean(said != test[1]))
