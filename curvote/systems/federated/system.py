"""System `federated`: stages of a single server, for each server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from curvote.base.errors import Problem
from curvote.chain.axis import EPSILON, REPLICATE, Index, PipelineSettings
from curvote.chain.settings import Strict
from curvote.chain.stage import TEXT, VECTOR, Stage, Table
from curvote.chain.system import View
from curvote.data import lookup
from curvote.messages.measures import LEARNER
from curvote.systems.common import checks, declarations
from curvote.systems.common.models import average_ensemble, linear_model
from curvote.systems.common.settings import Aggregate, Privatize, Taught
from curvote.systems.common.tables import VOTES
from curvote.systems.mrma import system

if TYPE_CHECKING:
    from curvote.systems.federated.model import ServersClassifier

_STAGES = "curvote.systems.federated.stages"


class Federation(Strict):
    """Split of voters, second cutoff and faults of many servers."""

    split: Literal["clients", "budget", "single"] = "clients"
    cutoff: Annotated[float, Field(ge=0.5, lt=1)] = 0.8
    faults: dict[int, Literal["nan", "dimension", "huge", "weights", "silent"]] = {}


class Settings(Taught):
    """Settings of MRMA on many servers that share what they learn."""

    privatize: Privatize = Privatize()
    aggregate: Aggregate = Aggregate()
    federation: Federation = Federation()


def servers_model(view: View) -> ServersClassifier:
    """Return the classifiers of all servers of replicate 0."""
    from curvote.systems.federated.model import ServersClassifier  # see `linear_model`

    models = []
    for server in range(len(view.metadata("project")["groups"])):
        offers = view.columns("exchange", "offers", (0, server))
        ensemble = view.columns("combine", "ensemble", (0, server))
        accepted = offers["accepted"]
        lines = offers["coef"][accepted], offers["intercept"][accepted]
        line = average_ensemble(lines, ensemble)
        models.append(linear_model(view, line, (0, server)))
    return ServersClassifier(models)


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


def server_count(settings: PipelineSettings) -> int:
    """Return how many servers the source's clients belong to."""
    return len(lookup.servers(settings.source) or ())


def _for_every_server(stage: Stage) -> Stage:
    """Return a single server's stage, repeated for every server."""
    return replace(stage, params=(*stage.params, "servers"))


_EVALUATE = declarations.client_stage(
    "evaluate",
    _STAGES,
    VOTES,
    ("project", "train"),
    axes=system.CELL_AXES,
    params=_VOTE_PARAMS,
)
_EXCHANGE = declarations.server_stage(
    "exchange",
    _STAGES,
    ("train", "aggregate"),
    _OFFERS,
    axes=system.CELL_AXES,
    params=("federation.split", "federation.faults", "servers"),
    side="server -> servers",
)
_AGGREGATE = _for_every_server(system.AGGREGATE)
_COMBINE = replace(
    _AGGREGATE,
    name="combine",
    module=f"{_STAGES}:combine",
    inputs=("reevaluate",),
    params=(*_AGGREGATE.params, "federation.split", "federation.cutoff"),
)
_SCORE = declarations.score_stage(
    f"{_STAGES}:score",
    ("project", "aggregate", "exchange", "combine"),
    system.CELL_AXES,
    ("project.judge", *declarations.ROLE_PARAMS, "servers"),
    index=("replicate",),
)


def _check_federation(pipeline: PipelineSettings) -> Iterator[Problem]:
    servers, federation = server_count(pipeline), pipeline.federation
    if not servers:
        return
    classifier_count = (pipeline.train.count if pipeline.train else 0) + servers
    unknown = [server for server in federation.faults if not 0 <= server < servers]
    if unknown:
        message = f"there is no server {unknown[0]}: they are 0 to {servers - 1}."
        yield Problem(message, ("federation", "faults"))
    voters = pipeline.clients.vote
    if federation.split == "clients" and voters < classifier_count:
        message = f"{classifier_count} classifiers, but only {voters} clients vote."
        yield Problem(message, ("clients", "vote"))


def _dropped_servers(views: Sequence[View]) -> list[str]:
    """Return which servers the others could not use, and why."""
    pairs: set[tuple[int, str]] = set()
    for offers in (view.read("exchange", "offers") for view in views):
        dropped = offers.loc[~offers["accepted"], ["sender", "reason"]]
        pairs |= {*dropped.itertuples(index=False, name=None)}
    return [f"server {k} was dropped: {reason}" for k, reason in sorted(pairs)]


SYSTEM = declarations.learning_system(
    "federated",
    Settings,
    (
        replace(_for_every_server(system.PRIVATIZE), module=f"{_STAGES}:privatize"),
        _for_every_server(system.TRAIN),
        _EVALUATE,
        _AGGREGATE,
        _EXCHANGE,
        replace(
            _EVALUATE,
            name="reevaluate",
            module=f"{_STAGES}:reevaluate",
            inputs=("project", "exchange"),
        ),
        _COMBINE,
        _SCORE,
    ),
    "mrma federated",
    axes=(EPSILON, LEARNER),
    index=(REPLICATE, Index("server", server_count)),
    main=("federated",),
    checks=(*checks.LEARNING_CHECKS, _check_federation),
    classes=checks.check_two_classes,
    final_model=servers_model,
    notes=_dropped_servers,
    sections=(declarations.NONE_PASSED, declarations.UTILITIES, *declarations.SECTIONS),
)
