"""Stages of `online`: reports, candidates, votes and updates by arrival."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.chain import stage
from curvote.learning import online
from curvote.learning.votes import draw_subsets
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.messages.stages import configured_task, study_metadata
from curvote.systems.common import models, study
from curvote.systems.mrma.messages import Report, Vote
from curvote.systems.mrma.stages import RULE_SETTINGS
from curvote.wire.task import Candidates

# In place of a candidate's number: an earlier ensemble, watched for a drop.
INCUMBENT: Final = -1
_PREVIOUS = "update@previous"


def client_arrivals(context: stage.StageContext) -> NDArray[np.int64]:
    """Return the arrival of every client, (n,), numbered from 0.

    A source whose groups are no arrivals is a UserError.
    """
    if "periods" not in context.inputs["project"].metadata:
        raise UserError(
            "protocol online needs clients who arrive in groups, such as those of"
            " source drifting.",
            where=("source", "name"),
        )
    return context.rows("project", "encoded")["group"]


def arriving_clients(context: stage.StageContext) -> study.StudyClients:
    """Return the clients with the roles of this stage's arrival.

    Roles are split among all clients first, so that they do not depend on how many
    arrivals there have been. An arrival beyond the source's last is a UserError.
    """
    arrival, groups = context.params["arrival"], client_arrivals(context)
    periods = context.inputs["project"].metadata["periods"]
    if arrival >= periods:
        raise UserError(
            f"arrival {arrival} was asked for, but the source has only"
            f" {periods}, numbered from 0.",
            where=("online", "arrivals"),
        )
    clients = study.study_clients(context)
    roles = {role: i[groups[i] == arrival] for role, i in clients.roles.items()}
    return replace(clients, roles=roles)


REPORT_MESSAGE: Final = Report()
privatize_metadata, _ = study.draw_stage(REPORT_MESSAGE)


def privatize(context: stage.StageContext) -> stage.Rows:
    """Return the table ``arriving``: noised, no client id, shuffled.

    Every training client reports; an arrival reads only its own.
    """
    clients = study.study_clients(context)
    rows = context.generator("shuffle").permutation(clients.roles["train"])
    task = study.study_task(context, REPORT_MESSAGE)
    messages = study.draw_messages(context, REPORT_MESSAGE, task, clients.data_of(rows))
    return {"arriving": {"arrival": client_arrivals(context)[rows]} | messages}


learn_metadata = models.train_metadata


def learn_batch(many: Sequence[stage.StageContext]) -> Iterator[stage.Rows]:
    """Yield the table ``candidates``; a candidate keeps its number for ever.

    The first arrival trains ``train.count`` from its reports; a later one adds
    ``online.more`` from its own if the one before it saw a drop.
    """
    public = many[0].inputs["privatize"].metadata
    new = models.fit_repetitions(
        [_new_problems(context) for context in many], public, many[0].metadata
    )
    for context, columns in zip(many, new, strict=True):
        parts: list[stage.Columns] = []
        if "learn@previous" in context.inputs:
            parts.append(context.rows("learn@previous", "candidates"))
        if columns:
            birth = np.full(len(columns["n"]), context.params["arrival"])
            parts.append(columns | {"birth": birth})
        names = parts[0].keys() - {"learner"}
        table = {name: np.concatenate([part[name] for part in parts]) for name in names}
        yield {"candidates": {"learner": np.arange(len(table["birth"])), **table}}


def _new_problems(context: stage.StageContext) -> list[models.Problem]:
    """Return the problem of each new classifier."""
    params, arrival = context.params, context.params["arrival"]
    count = int(params["train.count"])
    if _PREVIOUS in context.inputs:
        if not context.rows(_PREVIOUS, "history")["dropped"][-1]:
            return []
        count = int(params["online.more"])
    reports = context.rows("privatize", "arriving")
    arrival_rows = np.flatnonzero(reports["arrival"] == arrival)
    rng = context.generator("draw", "train", block=arrival)
    subsets = draw_subsets(rng, len(arrival_rows), count, params["train.size"])
    return [models.make_problem(reports, rows) for rows in arrival_rows[subsets]]


VOTE_MESSAGE: Final = Vote()
# One voter in WATCH judges the incumbent: with 400 such votes on either side of a drop
# and epsilon 1, three standard errors are a difference of 0.23 in accuracy.
WATCH_INTERVAL = 4


def evaluate_metadata(inputs: stage.Inputs, params: stage.Params) -> stage.Metadata:
    """Return the vote's budget, and the share of voters who watch the incumbent."""
    vote = study_metadata(VOTE_MESSAGE, inputs, params)
    return vote | {"incumbent": 1 / WATCH_INTERVAL}


def evaluate(context: stage.StageContext) -> stage.Rows:
    """Return the table ``arrival_votes``: counts for each candidate, no client.

    Candidate -1 is the incumbent: the ensemble of the arrival in which classifiers
    were last added, so that its readings compare from one arrival to the next.
    """
    clients, arrival = arriving_clients(context), context.params["arrival"]
    table = context.rows("learn", "candidates")
    learner, coef, intercept = (table[n] for n in ("learner", "coef", "intercept"))
    if _PREVIOUS in context.inputs:
        history = context.rows(_PREVIOUS, "history")
        incumbent = np.flatnonzero(history["added"])[-1]
        learner = np.append(learner, INCUMBENT)
        coef = np.vstack([coef, history["coef"][incumbent]])
        intercept = np.append(intercept, history["intercept"][incumbent])
    task = configured_task(VOTE_MESSAGE, context.inputs, context.params)
    task = replace(task, candidates=Candidates(coef, intercept))
    rows = clients.roles["vote"]
    # One stream for each arrival, which stands where others have blocks of clients.
    rng = context.generator("split", block=arrival)
    noise = stage.block_noise(
        context.params["seed"], context.stage, context.number, arrival
    )
    n = len(rows)
    count = int((learner != INCUMBENT).sum())
    watch = 0 if count == len(learner) else n // WATCH_INTERVAL
    assigned = np.concatenate([np.arange(n - watch) % count, np.full(watch, count)])
    data = clients.data_of(rows, rng.permutation(assigned))
    votes = VOTE_MESSAGE.collect(task, VOTE_MESSAGE.draw(task, data, noise))
    return {"arrival_votes": votes | {"learner": learner}}


_COUNT_COLUMNS = ("n", "positive", "squares")
_CANDIDATE_COLUMNS = ("utility", "standard_error", "reversed", "weight")
_ENSEMBLE_COLUMNS = ("passed", "none_passed", "coef", "intercept")


# The rule that turns votes into weights and detects drops.
update_metadata = study.stated_metadata(
    **RULE_SETTINGS, memory="online.memory", error="online.error"
)


def update(context: stage.StageContext) -> stage.Rows:
    """Return ``standing`` and ``history`` with the rows of this arrival.

    ``standing`` has one row for each arrival and candidate, ``history`` one for each
    arrival.
    """
    keep = BinaryRR(epsilon=context.params["epsilon"]).keep
    votes = context.rows("evaluate", "arrival_votes")
    before = _previous_roster(context)
    rule = online.OnlineRule(keep=keep, **context.metadata)
    weak = votes["learner"] != INCUMBENT  # else on the incumbent
    n, positive = votes["n"], votes["positive"]
    watched = online.IncumbentVotes(int(n[~weak].sum()), int(positive[~weak].sum()))
    after = online.add_arrival(before, n[weak], positive[weak], rule, watched)
    b, arrival, newest = len(after.coef), len(after.history) - 1, after.history[-1]
    ensemble, (accuracy, error) = newest.ensemble, newest.incumbent.accuracy(keep)
    row = {
        "arrival": arrival,
        "votes": newest.votes,
        "added": newest.added,
        "incumbent_n": newest.incumbent.n,
        "incumbent_positive": newest.incumbent.positive,
        "utility": accuracy,
        "standard_error": error,
        "dropped": newest.dropped,
        **{name: getattr(ensemble, name) for name in _ENSEMBLE_COLUMNS},
    }
    tables = {
        "standing": {
            "arrival": np.full(b, arrival),
            "learner": np.arange(b),
            **{name: getattr(after, name) for name in _COUNT_COLUMNS},
            **{name: getattr(ensemble, name) for name in _CANDIDATE_COLUMNS},
        },
        "history": {name: np.array([value]) for name, value in row.items()},
    }
    if _PREVIOUS not in context.inputs:
        return tables
    earlier = {name: context.rows(_PREVIOUS, name) for name in tables}
    return {
        name: {key: np.concatenate([earlier[name][key], new[key]]) for key in new}
        for name, new in tables.items()
    }


def _previous_roster(context: stage.StageContext) -> online.Roster:
    """Return the roster before this arrival's votes."""
    candidates = context.rows("learn", "candidates")
    if _PREVIOUS not in context.inputs:
        return online.start_roster(candidates["coef"], candidates["intercept"])
    rows, history = (context.rows(_PREVIOUS, name) for name in ("standing", "history"))
    newest = {k: v[rows["arrival"] == history["arrival"][-1]] for k, v in rows.items()}
    b = len(newest["learner"])
    roster = online.Roster(
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
    later = candidates["coef"][b:], candidates["intercept"][b:]
    return online.extend_roster(roster, *later)


def _read_arrival(
    t: int, rows: stage.Columns, history: stage.Columns
) -> online.Arrival:
    """Return one row of the history, with the state of each candidate."""
    is_then, row = rows["arrival"] == t, {k: v[t] for k, v in history.items()}
    return online.Arrival(
        votes=int(row["votes"]),
        added=int(row["added"]),
        incumbent=online.IncumbentVotes(
            int(row["incumbent_n"]), int(row["incumbent_positive"])
        ),
        dropped=bool(row["dropped"]),
        ensemble=online.Ensemble(
            *(rows[name][is_then] for name in _CANDIDATE_COLUMNS),
            *(row[name] for name in _ENSEMBLE_COLUMNS),
        ),
    )


# Rows of the history: today's ensemble, and the first one, which never learned more.
HISTORY_ROWS = {"online": -1, "frozen": 0}


def score(context: stage.StageContext) -> stage.Rows:
    """Return the table ``scores``: the errors on this arrival's test clients."""
    test = study.TestClients(
        *arriving_clients(context).features_and_signs(
            context.params["project.judge"], "test"
        )
    )
    history = context.rows("update", "history")
    error = test.error(test.decisions(history["coef"], history["intercept"]))
    errors = {method: float(error[row]) for method, row in HISTORY_ROWS.items()}
    none_passed = {m: history["none_passed"][row] for m, row in HISTORY_ROWS.items()}
    return study.score_rows(errors, none_passed)
