"""Stages of `federated`: polls, exchange and combination of classifiers."""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.curves.encoding import decision_sign
from curvote.messages.message import assign_candidates
from curvote.messages.stages import configured_task, study_metadata
from curvote.systems.common import study
from curvote.systems.common.models import average_ensemble
from curvote.systems.mrma import stages
from curvote.systems.mrma.messages import Report, Vote
from curvote.wire.task import Candidates, Task

Array = NDArray[np.float64]

MAX_LENGTH_RATIO = 1e3  # times the median length: no honest server's classifier
MAX_WEIGHT_RATIO = 10.0  # times the median length: what a classifier may count for
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Offer:
    """A server's own classifier: ``coef`` (d,), ``intercept``, and its ``weights``.

    ``weights`` (B,) are those of the server's weak classifiers in it: a distribution.
    """

    server: int
    coef: Array
    intercept: float
    weights: Array

    @property
    def length(self) -> float:
        """The Euclidean length of (coef, intercept); it may be infinite."""
        return math.hypot(*self.coef, self.intercept)

    def to_json(self) -> dict[str, Any]:
        """Return the offer as it goes over the wire: numbers and lists."""
        return {
            "server": self.server,
            "coef": self.coef.tolist(),
            "intercept": self.intercept,
            "weights": self.weights.tolist(),
        }


@dataclass(frozen=True)
class DroppedOffer:
    """Server whose offer is left out (None: unknown), and the reason."""

    server: int | None
    reason: str


def accept_offers(
    received: Iterable[object], own_offer: Offer, servers: int
) -> tuple[list[Offer], list[DroppedOffer]]:
    """Return the offers that a server keeps, and those that it drops.

    ``received`` holds what came from the other of ``servers`` servers, decoded JSON of
    any kind; ``own_offer`` is always kept. Dropped, never an exception: what is no
    offer, names no server or one that was heard before, is not finite numbers, has
    another d, weights that are no distribution, all zeros, or a length over 1000 times
    or below a thousandth of the median length of all (the geometric one, so that of two
    servers neither decides alone); and who sent nothing.

    The average is over unnormalised coefficients (MRMA, equation 11), so a long offer
    counts for more than its weight says: one longer than ten times the median of those
    accepted is cut to that, which leaves its decisions as they are.
    """
    answers: dict[int, Offer | str] = {own_offer.server: own_offer}
    dropped = []
    for message in received:
        server = message.get("server") if isinstance(message, Mapping) else None
        if type(server) is not int or not 0 <= server < servers:
            dropped.append(DroppedOffer(None, "names no server"))
        elif server in answers:
            dropped.append(DroppedOffer(server, "sent more than one offer"))
        else:
            answers[server] = _parse_offer(server, message, len(own_offer.coef))
    silent = (k for k in range(servers) if k not in answers)
    answers |= dict.fromkeys(silent, "sent nothing")
    usual_length = _usual_log_length(answers)
    for server, offer in answers.items():
        if isinstance(offer, Offer) and offer is not own_offer:
            excess = _log_length(offer) - usual_length
            if not offer.length:
                answers[server] = "is zero"
            elif abs(excess) > math.log(MAX_LENGTH_RATIO):
                side = "over 1000 times" if excess > 0 else "below a thousandth of"
                answers[server] = f"is {side} the median length"
    usual_length = _usual_log_length(answers)
    accepted = []
    for server, answer in answers.items():
        if isinstance(answer, str):
            dropped.append(DroppedOffer(server, answer))
        elif answer is own_offer:
            accepted.append(answer)
        else:
            excess = _log_length(answer) - usual_length - math.log(MAX_WEIGHT_RATIO)
            factor = math.exp(-max(excess, 0.0))
            shorter = factor * answer.coef, factor * answer.intercept
            accepted.append(replace(answer, coef=shorter[0], intercept=shorter[1]))
    return sorted(accepted, key=lambda offer: offer.server), dropped


def _parse_offer(server: int, message: Any, d: int) -> Offer | str:
    """Return the offer of a message, or what is wrong with it."""
    try:
        coef, weights = (_finite_array(message.get(k)) for k in ("coef", "weights"))
        intercept = _finite_array([message.get("intercept")])
    except UserError as error:
        return str(error)
    if len(coef) != d:
        return f"has {len(coef)} coefficients instead of {d}"
    is_share = ((weights >= 0) & (weights <= 1)).all()
    if not is_share or abs(weights.sum() - 1) > _ROUNDING:
        return "states weights that are no distribution"
    return Offer(server, coef, float(intercept[0]), weights)


def _finite_array(values: object) -> Array:
    """Return a list of finite numbers as an array."""
    if not isinstance(values, list) or not {type(v) for v in values} <= {int, float}:
        raise UserError("sent something that is no number")
    try:
        array = np.array(values, dtype=np.float64)
    except OverflowError:  # an integer may have any number of digits
        array = np.array([np.inf])
    if not np.isfinite(array).all():
        raise UserError("sent numbers that are not finite")
    return array


def _log_length(offer: Offer) -> float:
    # Clamped: a length may be 0 or overflow.
    return math.log(min(max(offer.length, sys.float_info.min), sys.float_info.max))


def _usual_log_length(answers: Mapping[int, Offer | str]) -> float:
    """Return the median of the lengths' logarithms."""
    offers = (offer for offer in answers.values() if isinstance(offer, Offer))
    return float(np.median([_log_length(offer) for offer in offers]))


OfferMessage = dict[str, Any]
FAULTS: Final[dict[str, Callable[[OfferMessage], OfferMessage] | None]] = {
    "nan": lambda offer: offer | {"coef": [float("nan")] * len(offer["coef"])},
    "dimension": lambda offer: offer | {"coef": [*offer["coef"], 1.0]},
    "huge": lambda offer: offer | {"coef": [1e9 * number for number in offer["coef"]]},
    "weights": lambda offer: offer | {"weights": [-1e9 * w for w in offer["weights"]]},
    "silent": None,
}


def apply_faults(
    offers: Iterable[Offer], faults: Mapping[int, str]
) -> Iterator[OfferMessage]:
    """Yield the message of each server, as its fault leaves it."""
    for offer in offers:
        fault = FAULTS[faults[offer.server]] if offer.server in faults else dict
        if fault is not None:
            yield fault(offer.to_json())


privatize_metadata, privatize = study.draw_stage(Report())
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
    clients: study.StudyClients,
    voters: Index,
    candidates: Index,
) -> Columns:
    """Return the table ``votes``: counts for each candidate, no client.

    ``voters`` says by position which evaluation clients vote, ``candidates`` on which
    one.
    """
    data = clients.data_of(clients.roles["vote"][voters], candidates)
    return VOTE_MESSAGE.collect(
        task, study.draw_messages(context, VOTE_MESSAGE, task, data)
    )


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
    clients = study.study_clients(context)
    task = VOTE_MESSAGE.task(vote_task(context.inputs, context.params), context.rows)
    parts = voter_parts(context, len(clients.roles["vote"]))
    voters = np.flatnonzero(parts < context.params["train.count"])
    return {"votes": count_votes(context, task, clients, voters, parts[voters])}


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
            offer = offers[context.place[-1]]
            foreign = (other for other in offers if other is not offer)
            received = apply_faults(foreign, _server_faults(context.params))
            answers = accept_offers(received, offer, len(offers))
            yield {"offers": _offer_rows(*answers)}


def _server_faults(params: Params) -> Mapping[int, str]:
    """Return ``federation.faults`` by number of server, which JSON writes as text."""
    return {int(k): fault for k, fault in params["federation.faults"].items()}


def _own_offer(context: StageContext) -> Offer:
    """Return the average of a server's reversed weak classifiers (MRMA, eq. 11)."""
    weak = context.rows("train", "weak")
    ensemble = context.rows("aggregate", "ensemble")
    line = average_ensemble((weak["coef"], weak["intercept"]), ensemble)
    return Offer(context.place[-1], *line, ensemble["weight"])


def accepted_lines(offers: Columns) -> tuple[Array, Array]:
    """Return coef and intercept of the accepted rows of the table ``offers``."""
    accepted = offers["accepted"]
    return offers["coef"][accepted], offers["intercept"][accepted]


def _offer_rows(accepted: Sequence[Offer], dropped: Sequence[DroppedOffer]) -> Columns:
    """Return a row for each server: its offer, or why it was dropped."""
    by_server = {offer.server: offer for offer in accepted}
    reasons = {drop.server: drop.reason for drop in dropped if drop.server is not None}
    servers = sorted({*by_server, *reasons})
    texts = [reasons.get(server, "") for server in servers]
    empty_offer = replace(accepted[0], coef=0 * accepted[0].coef, intercept=0.0)
    offers = [by_server.get(server, empty_offer) for server in servers]
    return {
        "sender": np.array(servers),
        "coef": np.array([offer.coef for offer in offers]),
        "intercept": np.array([offer.intercept for offer in offers]),
        "accepted": np.array([server in by_server for server in servers]),
        "reason": np.array(texts, dtype=object),
    }


reevaluate_metadata = poll_metadata


def reevaluate(context: StageContext) -> Rows:
    """Return the table ``votes``: learner is the server that offered a classifier."""
    clients, offers = study.study_clients(context), context.rows("exchange", "offers")
    candidates = Candidates(*accepted_lines(offers))
    task = replace(vote_task(context.inputs, context.params), candidates=candidates)
    voters = remaining_voters(context, len(clients.roles["vote"]))
    assigned = assign_candidates(task, len(voters), context.generator("split"))
    counts = count_votes(context, task, clients, voters, np.asarray(assigned))
    return {"votes": counts | {"learner": offers["sender"][offers["accepted"]]}}


# The rule that turns utilities into weights, with a cutoff of its own.
combine_metadata = study.stated_metadata(
    **stages.RULE_SETTINGS | {"cutoff": "federation.cutoff"}
)


def combine(context: StageContext) -> Rows:
    """Return the table ``ensemble``: one row for each classifier a server accepted.

    It is the single server's rule with the cutoff r0* (MRMA section 3.6). Without an
    exchange (``single``) nobody votes again, and the own classifier stands.
    """
    votes = context.rows("reevaluate", "votes")
    if context.params["federation.split"] == "single":
        full_weight, zero, flag = np.ones(1), np.zeros(1), np.zeros(1, dtype=bool)
        ensemble = {
            "learner": votes["learner"],
            "utility": full_weight / 2,
            "standard_error": zero,
            "reversed": flag,
            "weight": full_weight,
            "none_passed": flag,
            "weight_ma": full_weight,
            "none_passed_ma": flag,
        }
        return {"ensemble": ensemble}
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
    return {
        "scores": {
            name: np.concatenate([scores[name] for scores in server_scores])
            for name in server_scores[0]
        }
    }


def _score_server(context: StageContext, group: str) -> Columns:
    """Return the scores of one server's clients."""
    clients, judge = study.study_clients(context), context.params["project.judge"]
    features, labels = clients.features_and_signs(judge, "test")
    offers = context.rows("exchange", "offers")
    joint = context.rows("combine", "ensemble")
    own_ensemble = context.rows("aggregate", "ensemble")
    coef, intercept = average_ensemble(accepted_lines(offers), joint)
    is_own = offers["sender"] == context.place[-1]
    slopes = np.vstack([offers["coef"][is_own], coef])
    decision = features @ slopes.T + [float(offers["intercept"][is_own][0]), intercept]
    errors = np.mean(decision_sign(decision) != labels[:, None], axis=0)
    passed = own_ensemble["none_passed"][0], joint["none_passed"][0]
    pairs = (
        dict(zip(SERVER_METHODS, values, strict=True)) for values in (errors, passed)
    )
    rows = study.score_rows(*pairs)["scores"]
    return rows | {"group": np.full(len(rows["method"]), group, dtype=object)}
