"""Stage update: what was known of the candidates, brought up to date by new votes."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.protocols.online.codes import INCUMBENT
from curvote.server.online import (
    Arrival,
    Ensemble,
    IncumbentVotes,
    OnlineRule,
    Roster,
    add_arrival,
    extend_roster,
    start_roster,
)

_PREVIOUS = "update@previous"
_COUNT_COLUMNS = ("n", "positive", "squares")
_CANDIDATE_COLUMNS = ("utility", "standard_error", "reversed", "weight")
_ENSEMBLE_COLUMNS = ("passed", "none_passed", "coef", "intercept")


def facts(inputs: Inputs, params: Params) -> Metadata:
    """Return the rule that turns votes into weights and detects drops."""
    return {
        "cutoff": params["aggregate.cutoff"],
        "when_none_pass": params["aggregate.when_none_pass"],
        "weights": params["aggregate.weights"],
        "memory": params["online.memory"],
        "drop": params["online.drop"],
    }


def one(context: StageContext) -> Rows:
    """Return ``standing`` and ``history`` with the rows of this arrival.

    ``standing`` has one row for each arrival and candidate, ``history`` one for each
    arrival.
    """
    keep = BinaryRR(epsilon=context.params["epsilon"]).keep
    votes = context.rows("evaluate", "arrival_votes")
    after = _add_votes(
        _previous_roster(context), votes, OnlineRule(keep=keep, **context.metadata)
    )
    new = {"standing": _standing_rows(after), "history": _history_row(after, keep)}
    return {name: _append_rows(context, name, columns) for name, columns in new.items()}


def _add_votes(before: Roster, votes: Columns, rule: OnlineRule) -> Roster:
    candidates = votes["learner"] != INCUMBENT
    n, positive = votes["n"], votes["positive"]
    watched = IncumbentVotes(
        int(n[~candidates].sum()), int(positive[~candidates].sum())
    )
    return add_arrival(before, n[candidates], positive[candidates], rule, watched)


def _previous_roster(context: StageContext) -> Roster:
    """Return the roster before this arrival's votes."""
    candidates = context.rows("learn", "candidates")
    if _PREVIOUS not in context.inputs:
        return start_roster(candidates["coef"], candidates["intercept"])
    rows, history = (
        context.rows(_PREVIOUS, table) for table in ("standing", "history")
    )
    newest = {k: v[rows["arrival"] == history["arrival"][-1]] for k, v in rows.items()}
    b = len(newest["learner"])
    roster = Roster(
        coef=candidates["coef"][:b],
        intercept=candidates["intercept"][:b],
        birth=candidates["birth"][:b],
        n=newest["n"],
        positive=newest["positive"],
        squares=newest["squares"],
        history=tuple(_read_arrival(t, rows, history) for t in history["arrival"]),
    )
    if b == len(candidates["coef"]):
        return roster
    return extend_roster(roster, candidates["coef"][b:], candidates["intercept"][b:])


def _read_arrival(t: int, rows: Columns, history: Columns) -> Arrival:
    """Return one row of the history, with the state of each candidate."""
    is_then, row = rows["arrival"] == t, {k: v[t] for k, v in history.items()}
    return Arrival(
        votes=int(row["votes"]),
        added=int(row["added"]),
        incumbent=IncumbentVotes(
            int(row["incumbent_n"]), int(row["incumbent_positive"])
        ),
        dropped=bool(row["dropped"]),
        ensemble=Ensemble(
            *(rows[name][is_then] for name in _CANDIDATE_COLUMNS),
            *(row[name] for name in _ENSEMBLE_COLUMNS),
        ),
    )


def _standing_rows(after: Roster) -> Columns:
    """Return the newest arrival's rows of ``standing``."""
    b, newest = len(after.coef), after.history[-1].ensemble
    return {
        "arrival": np.full(b, len(after.history) - 1),
        "learner": np.arange(b),
        **{name: getattr(after, name) for name in _COUNT_COLUMNS},
        **{name: getattr(newest, name) for name in _CANDIDATE_COLUMNS},
    }


def _history_row(after: Roster, keep: float) -> Columns:
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
        **{name: getattr(newest.ensemble, name) for name in _ENSEMBLE_COLUMNS},
    }
    return {name: np.array([value]) for name, value in row.items()}


def _append_rows(context: StageContext, name: str, new: Columns) -> Columns:
    if _PREVIOUS not in context.inputs:
        return new
    old = context.rows(_PREVIOUS, name)
    return {key: np.concatenate([old[key], new[key]]) for key in new}
