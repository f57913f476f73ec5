"""Stage report of a study: the true test error of every method and replicate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.classifier import sign
from curvote.protocols.mrma.arms import WEAK_ARMS
from curvote.protocols.mrma.study import study_clients
from curvote.protocols.stage import Columns, Facts, Inputs, Params, Tables
from curvote.server.averaging import average

Array = NDArray[np.float64]
METHODS = ("weak", "mr", "ma", "mrma", "voting", "averaging", "all_data")


@dataclass(frozen=True)
class Test:
    """The test clients of one replicate: features (n, d) and labels -1/+1."""

    features: Array
    labels: Array

    def decisions(self, coef: Array, intercept: Array) -> Array:
        """Return f_b(x_i) as an array (n, B)."""
        return np.asarray(self.features @ np.atleast_2d(coef).T + intercept)

    def error(self, decisions: Array) -> Array:
        """Return the misclassification of each column."""
        return np.asarray(np.mean(sign(decisions) != self.labels[:, None], axis=0))


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the name under which the cell's rows stand."""
    return {"protocol": params["protocol"], "learner": params["learner.label"]}


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``scores``: one row for each method and replicate."""
    return {"scores": [_scores(r, inputs, params) for r in replicates]}


def _scores(replicate: int, inputs: Inputs, params: Params) -> Columns:
    clients = study_clients(inputs["project"], params, replicate)
    test = Test(*clients.judged(params["project.judge"], "test"))
    weak = inputs["train"].columns("weak", replicate)
    ensemble = inputs["aggregate"].columns("ensemble", replicate)
    errors = single(test, weak, ensemble) | combined(test, weak, ensemble)
    none_passed = {
        "mrma": ensemble["none_passed"][0],
        "ma": ensemble["none_passed_ma"][0],
    }
    return score_rows(errors, none_passed, params, params["learner.label"])


def score_rows(
    errors: dict[str, float],
    none_passed: dict[str, Any],
    params: Params,
    learner: str | None,
) -> Columns:
    """Return the rows of table ``scores`` for one replicate."""
    n = len(errors)
    return {
        "protocol": np.array([params["protocol"]] * n, dtype=object),
        "epsilon": np.full(n, params["epsilon"]),
        "learner": np.array([learner] * n, dtype=object),
        "method": np.array(list(errors), dtype=object),
        "misclassification": np.array(list(errors.values()), dtype=float),
        "none_passed": np.array([bool(none_passed.get(m, False)) for m in errors]),
    }


def single(test: Test, weak: Columns, ensemble: Columns) -> dict[str, float]:
    """Return ``weak`` and ``mr``: the mean error before and after reversal."""
    rows = weak["arm"] == WEAK_ARMS.index("weak")
    decisions = test.decisions(weak["coef"][rows], weak["intercept"][rows])
    turned = np.where(ensemble["reversed"], -decisions, decisions)
    return {
        "weak": float(test.error(decisions).mean()),
        "mr": float(test.error(turned).mean()),
    }


def combined(test: Test, weak: Columns, ensemble: Columns) -> dict[str, float]:
    """Return the error of every method that ends in one classifier."""
    coef, intercept = weak["coef"], weak["intercept"]
    rows = {arm: weak["arm"] == code for code, arm in enumerate(WEAK_ARMS)}
    own, pool, everybody = (rows[arm] for arm in WEAK_ARMS)
    turn = np.where(ensemble["reversed"], -1.0, 1.0)
    equal = np.full(int(pool.sum()), 1 / pool.sum())
    final = {
        "ma": average(coef[own], intercept[own], ensemble["weight_ma"]),
        "mrma": average(coef[own], intercept[own], turn * ensemble["weight"]),
        "averaging": average(coef[pool], intercept[pool], equal),
        "all_data": (coef[everybody][0], float(intercept[everybody][0])),
    }
    votes = sign(test.decisions(coef[pool], intercept[pool])).sum(axis=1)
    errors = {"voting": float(test.error(votes[:, None])[0])}
    for method, (slope, constant) in final.items():
        decision = test.decisions(slope, np.atleast_1d(constant))
        errors[method] = float(test.error(decision)[0])
    return errors
