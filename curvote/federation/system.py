"""Many servers as data: every stage but the last once for each server.

The stages of a single server run for each of them as they are. Clients send a single
server's messages; under ``budget`` an evaluation client sends two votes, each with half
of its epsilon.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from curvote.chain.axis import EPSILON, REPLICATE, Index
from curvote.chain.axis import Settings as Given
from curvote.chain.measure import Look, Method
from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.chain.tables import TEXT, VECTOR, Table
from curvote.chain.view import View
from curvote.datasets import lookup
from curvote.errors import Problem
from curvote.federation.final import final
from curvote.federation.messages import MESSAGES
from curvote.federation.settings import Settings
from curvote.protocols import checks
from curvote.protocols.measures import ERRORS, LEARNER
from curvote.protocols.mrma.methods import MRMA
from curvote.protocols.mrma.system import (
    AGGREGATE,
    CELLS,
    PRIVATIZE,
    TRAIN,
)
from curvote.protocols.mrma.tables import VOTES
from curvote.protocols.stages.declared import (
    COMMON,
    NONE_PASSED,
    ROLES,
    SECTIONS,
    UTILITIES,
    drawn,
    scored,
    served,
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
_VOTE = ("federation.split", "train.count", "project.judge", "servers")


def servers_of(settings: Given) -> int:
    """Return how many servers the source's clients belong to."""
    return len(lookup.servers(settings.source) or ())


def _everywhere(stage: Stage) -> Stage:
    """Return a single server's stage, repeated for every server."""
    return replace(stage, params=(*stage.params, "servers"))


_EVALUATE = drawn(
    "evaluate",
    f"{_HERE}.evaluate",
    VOTES,
    ("project", "train"),
    axes=CELLS,
    params=_VOTE,
)
_EXCHANGE = served(
    "exchange",
    f"{_HERE}.exchange",
    ("train", "aggregate"),
    _OFFERS,
    axes=CELLS,
    params=("federation.split", "federation.faults", "servers"),
    side="server -> servers",
)
_AGGREGATE = _everywhere(AGGREGATE)
_COMBINE = replace(
    _AGGREGATE,
    name="combine",
    module=f"{_HERE}.combine",
    inputs=("reevaluate",),
    params=(*_AGGREGATE.params, "federation.split", "federation.cutoff"),
)
_SCORE = scored(
    f"{_HERE}.report",
    ("project", "aggregate", "exchange", "combine"),
    CELLS,
    ("project.judge", *ROLES, "servers"),
    index=("replicate",),
)


def _judged(pipeline: Given) -> Iterator[Problem]:
    servers, federation = servers_of(pipeline), pipeline.federation
    if not servers:
        return
    judged = (pipeline.train.count if pipeline.train else 0) + servers
    absent = [server for server in federation.faults if not 0 <= server < servers]
    if absent:
        message = f"there is no server {absent[0]}: they are 0 to {servers - 1}."
        yield Problem(message, ("federation", "faults"))
    if federation.split == "clients" and pipeline.clients.vote < judged:
        message = (
            f"{judged} classifiers, but only {pipeline.clients.vote} clients vote."
        )
        yield Problem(message, ("clients", "vote"))


def _dropped(views: Sequence[View]) -> list[str]:
    """Say which servers the others could not use, and why; most often none."""
    wanted = ["sender", "reason"]
    every = (view.read("exchange", "offers") for view in views)
    out = (offers.loc[~offers["accepted"], wanted] for offers in every)
    pairs = {pair for each in out for pair in each.itertuples(index=False, name=None)}
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
        *COMMON,
        replace(_everywhere(PRIVATIZE), module=f"{_HERE}.privatize"),
        _everywhere(TRAIN),
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
    index=(REPLICATE, Index("server", servers_of)),
    messages=MESSAGES,
    metrics=ERRORS,
    methods=(MRMA, _FEDERATED),
    main=("federated",),
    checks=checks.every(*checks.LEARNING, _judged),
    final=final,
    notes=_dropped,
    sections=(NONE_PASSED, UTILITIES, *SECTIONS),
)
