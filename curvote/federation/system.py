"""System `federated`: stages of a single server, for each server.

The stages of a single server run for each of them as they are. Clients send a single
server's messages; under ``budget`` an evaluation client sends two votes, each with half
of its epsilon.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from curvote.chain.axis import EPSILON, REPLICATE, Index
from curvote.chain.axis import PipelineSettings as Given
from curvote.chain.measure import Look, Method
from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.chain.tables import TEXT, VECTOR, Table
from curvote.chain.view import View
from curvote.datasets import lookup
from curvote.errors import Problem
from curvote.federation.final import servers_model
from curvote.federation.messages import MESSAGES
from curvote.federation.settings import Settings
from curvote.protocols import checks
from curvote.protocols.measures import ERRORS, LEARNER
from curvote.protocols.mrma.methods import MRMA_METHOD
from curvote.protocols.mrma.system import (
    AGGREGATE,
    CELL_AXES,
    PRIVATIZE,
    TRAIN,
)
from curvote.protocols.mrma.tables import VOTES
from curvote.protocols.stages.declared import (
    COMMON_STAGES,
    NONE_PASSED,
    ROLE_PARAMS,
    SECTIONS,
    UTILITIES,
    client_stage,
    score_stage,
    server_stage,
)

_HERE = "curvote.federation"
_OFFERS = Table(
    "offers",
    {
        "sender": "int64",
        "coef": VECTOR,
        "intercept": "float64",
        "accepted": "bool",
        "reason": TEXT,
    },
    unit="server",
)
_VOTE_PARAMS = ("federation.split", "train.count", "project.judge", "servers")


def server_count(settings: Given) -> int:
    """Return how many servers the source's clients belong to."""
    return len(lookup.servers(settings.source) or ())


def _for_every_server(stage: Stage) -> Stage:
    """Return a single server's stage, repeated for every server."""
    return replace(stage, params=(*stage.params, "servers"))


_EVALUATE = client_stage(
    "evaluate",
    f"{_HERE}.evaluate",
    VOTES,
    ("project", "train"),
    axes=CELL_AXES,
    params=_VOTE_PARAMS,
)
_EXCHANGE = server_stage(
    "exchange",
    f"{_HERE}.exchange",
    ("train", "aggregate"),
    _OFFERS,
    axes=CELL_AXES,
    params=("federation.split", "federation.faults", "servers"),
    side="server -> servers",
)
_AGGREGATE = _for_every_server(AGGREGATE)
_COMBINE = replace(
    _AGGREGATE,
    name="combine",
    module=f"{_HERE}.combine",
    inputs=("reevaluate",),
    params=(*_AGGREGATE.params, "federation.split", "federation.cutoff"),
)
_SCORE = score_stage(
    f"{_HERE}.report",
    ("project", "aggregate", "exchange", "combine"),
    CELL_AXES,
    ("project.judge", *ROLE_PARAMS, "servers"),
    index=("replicate",),
)


def _check_federation(pipeline: Given) -> Iterator[Problem]:
    servers, federation = server_count(pipeline), pipeline.federation
    if not servers:
        return
    classifier_count = (pipeline.train.count if pipeline.train else 0) + servers
    unknown = [server for server in federation.faults if not 0 <= server < servers]
    if unknown:
        message = f"there is no server {unknown[0]}: they are 0 to {servers - 1}."
        yield Problem(message, ("federation", "faults"))
    if federation.split == "clients" and pipeline.clients.vote < classifier_count:
        message = (
            f"{classifier_count} classifiers, but only {pipeline.clients.vote} clients"
            " vote."
        )
        yield Problem(message, ("clients", "vote"))


def _dropped_servers(views: Sequence[View]) -> list[str]:
    """Return which servers the others could not use, and why."""
    wanted = ["sender", "reason"]
    tables = (view.read("exchange", "offers") for view in views)
    dropped = (offers.loc[~offers["accepted"], wanted] for offers in tables)
    pairs = {
        pair
        for pairs_of_view in dropped
        for pair in pairs_of_view.itertuples(index=False, name=None)
    }
    return [
        f"server {server} was dropped: {reason}" for server, reason in sorted(pairs)
    ]


_FEDERATED = Method(
    "federated",
    "federated",
    "The classifiers of all servers, reversed and averaged by what each server's "
    "own clients say of them.",
    Look("#7f52a3", "H", width=2.2, size=6, above=6),
    rank=50,
)


SYSTEM = System(
    name="federated",
    settings=Settings,
    stages=(
        *COMMON_STAGES,
        replace(_for_every_server(PRIVATIZE), module=f"{_HERE}.privatize"),
        _for_every_server(TRAIN),
        _EVALUATE,
        _AGGREGATE,
        _EXCHANGE,
        replace(
            _EVALUATE,
            name="reevaluate",
            module=f"{_HERE}.reevaluate",
            inputs=("project", "exchange"),
        ),
        _COMBINE,
        _SCORE,
    ),
    axes=(EPSILON, LEARNER),
    index=(REPLICATE, Index("server", server_count)),
    messages=MESSAGES,
    metrics=ERRORS,
    methods=(MRMA_METHOD, _FEDERATED),
    main=("federated",),
    checks=checks.combine_checks(*checks.LEARNING_CHECKS, _check_federation),
    final_model=servers_model,
    notes=_dropped_servers,
    sections=(NONE_PASSED, UTILITIES, *SECTIONS),
)
