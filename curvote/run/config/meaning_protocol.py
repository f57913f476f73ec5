"""Checks of what a protocol asks of a pipeline: sizes, budgets, sources, arms."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from curvote.client.report import Reporter
from curvote.datasets.registry import DATASETS
from curvote.errors import Problem, UserError
from curvote.mechanisms.registry import MECHANISMS
from curvote.protocols.registry import PROTOCOLS
from curvote.protocols.stage import Stage
from curvote.representation.rescale import UNBOUNDED
from curvote.run.config.choosing import AUTO, choices, is_open
from curvote.run.config.schema import Pipeline
from curvote.run.config.settings import LEARN_FROM_Z


def protocol_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield what the protocol cannot do with these settings."""
    yield from _sizes(pipeline)
    yield from _tested(pipeline)
    yield from _taught(pipeline)
    yield from _directions(pipeline)
    yield from _budgets(pipeline)
    if pipeline.liars and not is_open(pipeline):
        message = (
            f"counts where a rule chooses, and {pipeline.protocol} leaves it nothing;"
            " name it beside `auto`, or leave it out."
        )
        yield Problem(message, ("liars",))


def _tested(pipeline: Pipeline) -> Iterator[Problem]:
    scored = any(stage.tables == ("scores",) for stage in _stages(pipeline))
    needed = scored and pipeline.protocol != "drift"
    if needed and not (pipeline.production or pipeline.clients.test):
        yield Problem("a study needs clients to test on.", ("clients", "test"))


def _sizes(pipeline: Pipeline) -> Iterator[Problem]:
    clients, train = pipeline.clients, pipeline.train
    if not _reads(pipeline, "train.count"):
        return
    if train is None:
        message = "is missing: {count: 50, size: 50} says who learns from how many."
        yield Problem(message, ("train",))
        return
    voted = any(stage.name == "evaluate" for stage in _stages(pipeline))
    if train.size > clients.train:
        message = f"{train.size} reports a learner, but only {clients.train} train."
        yield Problem(message, ("train", "size"))
    if voted and train.count > clients.vote:
        message = f"{train.count} classifiers, but only {clients.vote} clients vote."
        yield Problem(message, ("train", "count"))


def _taught(pipeline: Pipeline) -> Iterator[Problem]:
    asked = any("learner" in stage.axes for stage in _stages(pipeline))
    if asked and not pipeline.learners:
        yield Problem("is missing: `curvote list` names them.", ("learners",))


def _directions(pipeline: Pipeline) -> Iterator[Problem]:
    """Check what learns from z, or from noise on z."""
    project, clients = pipeline.project, pipeline.clients
    if pipeline.protocol in LEARN_FROM_Z and project.judge != "rescaled":
        message = f"{pipeline.protocol} learns from z, so it judges z: rescaled."
        yield Problem(message, ("project", "judge"))
    if project.rescale in UNBOUNDED and _reads(pipeline, "privatize.mechanism"):
        message = (
            f"{project.rescale} leaves values that noise on each cannot hide; `direct`"
            " hides their direction, `clean` nothing."
        )
        yield Problem(message, ("project", "rescale"))
    voters = clients.train + clients.vote
    if pipeline.protocol == "votes" and pipeline.votes.directions > voters:
        message = f"more directions than the {voters} clients who judge them."
        yield Problem(message, ("votes", "directions"))


def _budgets(pipeline: Pipeline) -> Iterator[Problem]:
    """Build every report's randomizers: what they refuse, they refuse here."""
    # Where the source decides, 2 stands in for d: what is refused hardly depends on it.
    privatize, d = pipeline.privatize, pipeline.project.size or 2
    if not _reads(pipeline, "privatize.mechanism"):
        return
    if privatize.mechanism not in MECHANISMS:
        return
    for epsilon in pipeline.epsilon:
        try:
            share = privatize.label_share
            Reporter.build(d, epsilon, privatize.mechanism, share, privatize.params)
        except UserError as error:
            yield Problem(str(error), ("privatize", "mechanism"))
            return


def source_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield what the protocol cannot do with this source, which is right in itself."""
    dataset = import_module(DATASETS[pipeline.source["name"]])
    source = dataset.Parameters.model_validate(pipeline.source)
    servers = dataset.servers(source) if hasattr(dataset, "servers") else None
    if (servers is None) is (pipeline.protocol == "federated"):
        message = "federated takes a source with several servers, and the reverse."
        yield Problem(message, ("protocol",))
    elif servers:
        yield from _federation(pipeline, servers)
    if pipeline.protocol == "online":
        yield from _online(pipeline, getattr(source, "periods", 0))
    try:
        list(choices(pipeline))
    except UserError as error:
        yield Problem(str(error), ("protocol",))


def _federation(pipeline: Pipeline, servers: int) -> Iterator[Problem]:
    count = pipeline.train.count if pipeline.train else 0
    federation, judged = pipeline.federation, count + servers
    absent = [server for server in federation.faults if not 0 <= server < servers]
    if absent:
        message = f"there is no server {absent[0]}: they are 0 to {servers - 1}."
        yield Problem(message, ("federation", "faults"))
    if federation.split == "clients" and pipeline.clients.vote < judged:
        message = (
            f"{judged} classifiers, but only {pipeline.clients.vote} clients vote."
        )
        yield Problem(message, ("clients", "vote"))


def _online(pipeline: Pipeline, periods: int) -> Iterator[Problem]:
    if not periods:
        yield Problem("online takes a source whose clients arrive.", ("protocol",))
    elif pipeline.online.arrivals > periods:
        message = f"the source has {periods} periods only."
        yield Problem(message, ("online", "arrivals"))
    elif pipeline.train and pipeline.train.size > pipeline.clients.train // periods:
        message = "more reports a learner than train in one arrival."
        yield Problem(message, ("train", "size"))


def _reads(pipeline: Pipeline, key: str) -> bool:
    return any(key in stage.params for stage in _stages(pipeline))


def _stages(pipeline: Pipeline) -> tuple[Stage, ...]:
    """Return what the protocol does, as far as it is known."""
    protocol = "direct" if pipeline.protocol == AUTO else pipeline.protocol
    if protocol not in PROTOCOLS:
        return ()
    stages: tuple[Stage, ...] = import_module(PROTOCOLS[protocol]).STAGES
    return stages
