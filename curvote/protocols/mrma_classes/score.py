"""Stage report of a study of `mrma_classes`: the true test error of every method.

A weak classifier tells one class from the rest, so the methods `weak` and `mr` are of K
of them together, one of each class.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Here, Rows
from curvote.classifier import sign
from curvote.protocols import by_class
from curvote.protocols.combining import Lines, said, turned, wrong
from curvote.protocols.mrma.score import best
from curvote.protocols.mrma.tables import variant
from curvote.protocols.questions import Array, apart, in_turn, one_against_rest
from curvote.protocols.scores import score_rows
from curvote.protocols.study import clients_of

Tested = tuple[Array, NDArray[np.int64]]


def one(here: Here) -> Rows:
    """Return the table ``scores``: one row for each method, and recalls of `mrma`."""
    test = clients_of(here).told(here.params["project.judge"], "test")
    classes = here.inputs["project"].facts["classes"]
    code, weak = one_against_rest(len(classes)), here.rows("train", "weak")
    made = here.rows("aggregate", "ensemble")
    errors = own(code, test, weak, made) | pooled(code, test, weak)
    rows = score_rows(errors, none_passed(made))
    told = said(code, test[0], variant(weak, "weak"), turned(made))
    return by_class.told(rows, "mrma", test[1], told, classes)


def none_passed(ensemble: Columns) -> dict[str, bool]:
    """Return whether no classifier of any class passed, with and without reversal."""
    names = {"mrma": "none_passed", "ma": "none_passed_ma"}
    return {method: bool(ensemble[name].all()) for method, name in names.items()}


def own(code: Array, test: Tested, weak: Columns, made: Columns) -> dict[str, float]:
    """Return the error of each method of the weak classifiers that were voted on."""
    lines, turn = variant(weak, "weak"), np.where(made["reversed"], -1.0, 1.0)
    shares = {
        "ma": made["weight_ma"],
        "mrma": turned(made),
        "best_single": turn * in_turn([best(rows) for rows in apart(made, len(code))]),
    }
    found = {name: wrong(code, test, lines, share) for name, share in shares.items()}
    found["weak"] = _mean(code, test, lines, np.ones(len(turn)))
    return found | {"mr": _mean(code, test, lines, turn)}


def pooled(code: Array, test: Tested, weak: Columns) -> dict[str, float]:
    """Return the error of each method that learns from everybody's report."""
    pool, whole = variant(weak, "pooled"), variant(weak, "all_data")
    votes = sign(test[0] @ pool[0].T + pool[1]).reshape(len(test[0]), -1, len(code))
    elected = (votes.sum(axis=1) @ code).argmax(axis=1)
    return {
        "voting": float(np.mean(elected != test[1])),
        "averaging": wrong(code, test, pool, np.ones(len(pool[0]))),
        "all_data": wrong(code, test, whole, np.ones(len(code))),
    }


def _mean(code: Array, test: Tested, lines: Lines, turn: Array) -> float:
    """Return the mean error of rules of one classifier of each class."""
    rules = np.split(np.arange(len(turn)), len(turn) // len(code))
    each = [wrong(code, test, (lines[0][r], lines[1][r]), turn[r]) for r in rules]
    return float(np.mean(each))
