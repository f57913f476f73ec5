"""Stage update: what was known of the candidates, brought up to date by new votes."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Facts, Here, Inputs, Params, Rows
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.protocols.online.codes import INCUMBENT
from curvote.server.online import (
    Arrival,
    Ensemble,
    Reading,
    Roster,
    Rule,
    arrived,
    extended,
    started,
)

_PREVIOUS = "update@previous"
_COUNTS = ("n", "positive", "squares")
_BY_CANDIDATE = ("utility", "standard_error", "reversed", "weight")
_AS_ONE = ("passed", "none_passed", "coef", "intercept")


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the rule that turns votes into weights, and says when utility dropped."""
    return {
        "cutoff": params["aggregate.cutoff"],
        "when_none_pass": params["aggregate.when_none_pass"],
        "weights": params["aggregate.weights"],
        "memory": params["online.memory"],
        "drop": params["online.drop"],
    }


def one(here: Here) -> Rows:
    """Return ``standing`` and ``history``: the rows up to now, and those of today.

    ``standing`` has one row for each arrival and candidate, ``history`` one for each
    arrival.
    """
    keep = BinaryRR(epsilon=here.params["epsilon"]).keep
    votes = here.rows("evaluate", "arrival_votes")
    after = _arrived(_before(here), votes, Rule(keep=keep, **here.facts))
    new = {"standing": _candidates(after), "history": _row(after, keep)}
    return {name: _appended(here, name, columns) for name, columns in new.items()}


def _arrived(before: Roster, votes: Columns, rule: Rule) -> Roster:
    candidates = votes["learner"] != INCUMBENT
    n, positive = votes["n"], votes["positive"]
    watched = Reading(int(n[~candidates].sum()), int(positive[~candidates].sum()))
    return arrived(before, n[candidates], positive[candidates], rule, watched)


def _before(here: Here) -> Roster:
    """Return the roster before this arrival's votes, new candidates included."""
    up = here.rows("learn", "candidates")
    if _PREVIOUS not in here.inputs:
        return started(up["coef"], up["intercept"])
    rows, history = (here.rows(_PREVIOUS, table) for table in ("standing", "history"))
    last = {k: v[rows["arrival"] == history["arrival"][-1]] for k, v in rows.items()}
    b = len(last["learner"])
    known = Roster(
        coef=up["coef"][:b],
        intercept=up["intercept"][:b],
        birth=up["birth"][:b],
        n=last["n"],
        positive=last["positive"],
        squares=last["squares"],
        history=tuple(_arrival(t, rows, history) for t in history["arrival"]),
    )
    if b == len(up["coef"]):
        return known
    return extended(known, up["coef"][b:], up["intercept"][b:])


def _arrival(t: int, rows: Columns, history: Columns) -> Arrival:
    """Read one row of the history, and what was known of each candidate then."""
    then, one = rows["arrival"] == t, {k: v[t] for k, v in history.items()}
    return Arrival(
        votes=int(one["votes"]),
        added=int(one["added"]),
        incumbent=Reading(int(one["incumbent_n"]), int(one["incumbent_positive"])),
        dropped=bool(one["dropped"]),
        ensemble=Ensemble(
            *(rows[name][then] for name in _BY_CANDIDATE),
            *(one[name] for name in _AS_ONE),
        ),
    )


def _candidates(after: Roster) -> Columns:
    """Return the newest arrival's rows of ``standing``."""
    b, newest = len(after.coef), after.history[-1].ensemble
    return {
        "arrival": np.full(b, len(after.history) - 1),
        "learner": np.arange(b),
        **{name: getattr(after, name) for name in _COUNTS},
        **{name: getattr(newest, name) for name in _BY_CANDIDATE},
    }


def _row(after: Roster, keep: float) -> Columns:
    """Return the newest arrival's row of ``history``."""
    newest = after.history[-1]
    accuracy, error = newest.incumbent.accuracy(keep)
    row = {
        "arrival": len(after.history) - 1,
        "votes": newest.votes,
        "added": newest.added,
        "incumbent_n": newest.incumbent.n,
        "incumbent_positive": newest.incumbent.positive,
        "utility": accuracy,
        "standard_error": error,
        "dropped": newest.dropped,
        **{name: getattr(newest.ensemble, name) for name in _AS_ONE},
    }
    return {name: np.array([value]) for name, value in row.items()}


def _appended(here: Here, name: str, new: Columns) -> Columns:
    if _PREVIOUS not in here.inputs:
        return new
    old = here.rows(_PREVIOUS, name)
    return {key: np.concatenate([old[key], new[key]]) for key in new}
