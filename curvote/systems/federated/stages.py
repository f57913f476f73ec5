"""Stages of `federated`: polls, exchange and combination of classifiers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.curves.encoding import decision_sign
from curvote.messages.message import assign_candidates
from curvote.messages.stages import configured_task, study_metadata
from curvote.systems.common.classifiers import average_ensemble
from curvote.systems.common.study import (
    StudyClients,
    draw_messages,
    draw_stage,
    score_rows,
    study_clients,
)
from curvote.systems.federated.offers import (
    MAX_LENGTH_RATIO,
    MAX_WEIGHT_RATIO,
    DroppedOffer,
    Offer,
    accept_offers,
    apply_faults,
)
from curvote.systems.mrma import stages
from curvote.systems.mrma.messages import Report, Vote
from curvote.wire.task import Candidates, Task

privatize_metadata, privatize = draw_stage(Report())


Index = NDArray[np.int64]
VOTE_MESSAGE: Final = Vote()


def poll_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the public metadata of a vote, as its budget."""
    return study_metadata(VOTE_MESSAGE, inputs, _vote_params(params))


def vote_task(inputs: Inputs, params: Params) -> Task:
    """Return the task of a voter, without the candidates."""
    return configured_task(VOTE_MESSAGE, inputs, _vote_params(params))


def _vote_params(params: Params) -> Params:
    """Return the settings of one vote: half of epsilon where a client has two."""
    votes = 2 if params["federation.split"] == "budget" else 1
    return {**params, "epsilon": params["epsilon"] / votes}


def count_votes(
    context: StageContext,
    task: Task,
    clients: StudyClients,
    voters: Index,
    candidates: Index,
) -> Columns:
    """Return the table ``votes``: counts for each candidate, no client.

    ``voters`` says by position which evaluation clients vote, ``candidates`` on which
    one.
    """
    data = clients.data_of(clients.roles["vote"][voters], candidates)
    return VOTE_MESSAGE.collect(task, draw_messages(context, VOTE_MESSAGE, task, data))


def voter_parts(context: StageContext, voters: int) -> Index:
    """Return the part (voters,) that each voter of a server belongs to.

    Part b below B = ``train.count`` judges the own weak classifier b. Under ``clients``
    there are K more parts, which judge what the servers offer; sizes differ by 1.
    """
    count = context.params["train.count"]
    if context.params["federation.split"] == "clients":
        count += context.params["servers"]
    rng = context.generator("split", "evaluate")
    return np.asarray(rng.permutation(np.arange(voters) % count))


def remaining_voters(context: StageContext, voters: int) -> Index:
    """Return the positions of voters who judge the servers' offers."""
    if context.params["federation.split"] == "budget":
        return np.arange(voters)
    return np.flatnonzero(voter_parts(context, voters) >= context.params["train.count"])


evaluate_metadata = poll_metadata


def evaluate(context: StageContext) -> Rows:
    """Return the table ``votes``: counts for each own weak classifier, no client."""
    clients = study_clients(context)
    task = VOTE_MESSAGE.task(vote_task(context.inputs, context.params), context.rows)
    parts_of_voters = voter_parts(context, len(clients.roles["vote"]))
    voters = np.flatnonzero(parts_of_voters < context.params["train.count"])
    return {
        "votes": count_votes(context, task, clients, voters, parts_of_voters[voters])
    }


def exchange_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the number of servers, their faults, and the limits."""
    return {
        "servers": params["servers"],
        "faults": {str(k): fault for k, fault in _server_faults(params).items()},
        "absurd": MAX_LENGTH_RATIO,
        "longest": MAX_WEIGHT_RATIO,
    }


def exchange_batch(many: Sequence[StageContext]) -> Iterator[Rows]:
    """Yield the table ``offers``: what a server has of each server, or why not.

    The servers of a replicate stand together: what they send is made once.
    """
    for replicate, servers in groupby(many, lambda context: context.place[:-1]):
        first, *rest = servers
        if first.params["federation.split"] == "single":
            offers = [_own_offer(context) for context in (first, *rest)]
            yield from ({"offers": _offer_rows([offer], [])} for offer in offers)
            continue
        numbers = range(first.params["servers"])
        offers = [
            _own_offer(first.at_place((*replicate, server))) for server in numbers
        ]
        for context in (first, *rest):
            yield {"offers": _receive_offers(offers, context)}


def _server_faults(params: Params) -> Mapping[int, str]:
    """Return ``federation.faults`` by number of server, which JSON writes as text."""
    return {int(k): fault for k, fault in params["federation.faults"].items()}


def _own_offer(context: StageContext) -> Offer:
    """Return the average of a server's reversed weak classifiers (MRMA, eq. 11)."""
    weak, ensemble = (
        context.rows("train", "weak"),
        context.rows("aggregate", "ensemble"),
    )
    line = average_ensemble((weak["coef"], weak["intercept"]), ensemble)
    return Offer(context.place[-1], *line, ensemble["weight"])


def _receive_offers(offers: Sequence[Offer], context: StageContext) -> Columns:
    own_offer = offers[context.place[-1]]
    other_offers = (offer for offer in offers if offer is not own_offer)
    return _offer_rows(
        *accept_offers(
            apply_faults(other_offers, _server_faults(context.params)),
            own_offer,
            len(offers),
        )
    )


def _offer_rows(accepted: Sequence[Offer], dropped: Sequence[DroppedOffer]) -> Columns:
    """Return a row for each server: its offer, or why it was dropped."""
    by_server = {offer.server: offer for offer in accepted}
    reasons = {drop.server: drop.reason for drop in dropped if drop.server is not None}
    servers = sorted({*by_server, *reasons})
    empty_offer = replace(accepted[0], coef=0 * accepted[0].coef, intercept=0.0)
    offers = [by_server.get(server, empty_offer) for server in servers]
    return {
        "sender": np.array(servers),
        "coef": np.array([offer.coef for offer in offers]),
        "intercept": np.array([offer.intercept for offer in offers]),
        "accepted": np.array([server in by_server for server in servers]),
        "reason": np.array(
            [reasons.get(server, "") for server in servers], dtype=object
        ),
    }


reevaluate_metadata = poll_metadata


def reevaluate(context: StageContext) -> Rows:
    """Return the table ``votes``: learner is the server that offered a classifier."""
    clients, offers = study_clients(context), context.rows("exchange", "offers")
    is_accepted = offers["accepted"]
    candidates = Candidates(
        offers["coef"][is_accepted], offers["intercept"][is_accepted]
    )
    task = replace(vote_task(context.inputs, context.params), candidates=candidates)
    voters = remaining_voters(context, len(clients.roles["vote"]))
    assigned = np.asarray(
        assign_candidates(task, len(voters), context.generator("split"))
    )
    counts = count_votes(context, task, clients, voters, assigned)
    return {"votes": counts | {"learner": offers["sender"][is_accepted]}}


def combine_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the rule that turns utilities into weights."""
    cutoff = {"aggregate.cutoff": params["federation.cutoff"]}
    return stages.aggregate_metadata(inputs, {**params, **cutoff})


def combine(context: StageContext) -> Rows:
    """Return the table ``ensemble``: one row for each classifier a server accepted.

    It is the single server's rule with the cutoff r0* (MRMA section 3.6). Without an
    exchange (``single``) nobody votes again, and the own classifier stands.
    """
    votes = context.rows("reevaluate", "votes")
    if context.params["federation.split"] == "single":
        full_weight, zero, flag = np.ones(1), np.zeros(1), np.zeros(1, dtype=bool)
        return {
            "ensemble": (
                {
                    "learner": votes["learner"],
                    "utility": full_weight / 2,
                    "standard_error": zero,
                    "reversed": flag,
                    "weight": full_weight,
                    "none_passed": flag,
                    "weight_ma": full_weight,
                    "none_passed_ma": flag,
                }
            )
        }
    epsilon = context.inputs["reevaluate"].metadata["epsilon"]
    return {"ensemble": stages.ensemble_columns(votes, epsilon, context.metadata)}


SERVER_METHODS = ("mrma", "federated")


def score(context: StageContext) -> Rows:
    """Return the table ``scores``: a row for each server and method."""
    groups = context.inputs["project"].metadata["groups"]
    server_scores = [
        _score_server(context.at_place((*context.place, server)), str(group))
        for server, group in enumerate(groups)
    ]
    names = server_scores[0].keys()
    return {
        "scores": {
            n: np.concatenate([scores[n] for scores in server_scores]) for n in names
        }
    }


def _score_server(context: StageContext, group: str) -> Columns:
    """Return the scores of one server's clients."""
    clients = study_clients(context)
    features, labels = clients.features_and_signs(
        context.params["project.judge"], "test"
    )
    offers, joint = (
        context.rows("exchange", "offers"),
        context.rows("combine", "ensemble"),
    )
    own_ensemble = context.rows("aggregate", "ensemble")
    is_accepted = offers["accepted"]
    accepted = offers["coef"][is_accepted], offers["intercept"][is_accepted]
    coef, intercept = average_ensemble(accepted, joint)
    is_own = offers["sender"] == context.place[-1]
    slopes = np.vstack([offers["coef"][is_own], coef])
    decision = features @ slopes.T + [float(offers["intercept"][is_own][0]), intercept]
    errors = np.mean(decision_sign(decision) != labels[:, None], axis=0)
    passed = own_ensemble["none_passed"][0], joint["none_passed"][0]
    pairs = (
        dict(zip(SERVER_METHODS, values, strict=True)) for values in (errors, passed)
    )
    rows = score_rows(*pairs)["scores"]
    return rows | {"group": np.full(len(rows["method"]), group, dtype=object)}
