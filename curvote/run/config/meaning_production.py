"""What production asks of a pipeline beyond what a study does."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from curvote.datasets.lookup import module
from curvote.datasets.registry import DATASETS
from curvote.errors import Problem, UserError
from curvote.privacy import refuse_delta
from curvote.protocols.message import Message, messages
from curvote.protocols.registry import PROTOCOLS
from curvote.protocols.stage import Stage
from curvote.run.config.choosing import is_open, parts
from curvote.run.config.schema import Intake, Pipeline

REMOTE = "remote"


def production_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield what would make a release ambiguous, unbounded or impossible."""
    if not pipeline.production:
        yield from _study_only(pipeline)
        return
    if is_open(pipeline):
        message = (
            "a release names its arm, so that no later rule makes another one of it:"
            " `curvote advise` says which."
        )
        yield Problem(message, ("protocol",))
    if pipeline.protocol in PROTOCOLS and not _stages(pipeline):
        message = f"{pipeline.protocol} is for studies only."
        yield Problem(message, ("protocol",))
    if pipeline.project.bounds == "from_data":
        message = "bounds from the clients' data are a leak; production refuses them."
        yield Problem(message, ("project", "bounds"))
    yield from _identified(pipeline)
    yield from _exactly_one(pipeline)
    yield from _accounts(pipeline)
    yield from _envelopes(pipeline)


def _stages(pipeline: Pipeline) -> tuple[Stage, ...]:
    if pipeline.protocol not in PROTOCOLS:
        return ()
    stages: tuple[Stage, ...] = import_module(PROTOCOLS[pipeline.protocol]).PRODUCTION
    return stages


def _study_only(pipeline: Pipeline) -> Iterator[Problem]:
    for key in ("ledger", "intake"):
        if getattr(pipeline, key) is not None:
            message = "only a pipeline with mode: production has one."
            yield Problem(message, (key,))


def _identified(pipeline: Pipeline) -> Iterator[Problem]:
    """Row numbers name other people as soon as a file is sorted or a row is added."""
    name = pipeline.source.get("name")
    given = name in DATASETS and getattr(module(name), "GIVEN", False)
    if given and not pipeline.source.get("id"):
        message = "production needs the column whose ids stay with their clients: id."
        yield Problem(message, ("source",))


def _exactly_one(pipeline: Pipeline) -> Iterator[Problem]:
    for key in ("grid", "protocols", "as_published"):
        if getattr(pipeline, key):
            message = "belongs to studies; a release has one setting, the right one."
            yield Problem(message, (key,))
    learns = any("learner" in stage.axes for stage in _stages(pipeline))
    for key in ("epsilon", "learners") if learns else ("epsilon",):
        count = len(getattr(pipeline, key))
        if count != 1:
            message = f"production takes exactly one; {count} are given."
            yield Problem(message, (key,))


def _accounts(pipeline: Pipeline) -> Iterator[Problem]:
    if pipeline.intake:
        if pipeline.ledger:
            message = "with an intake every client keeps a ledger of its own."
            yield Problem(message, ("ledger",))
        return
    if pipeline.ledger is None:
        message = "production needs a cap: ledger: {per_client: {epsilon: 2}}."
        yield Problem(message, ("mode",))
        return
    cap, delta = pipeline.ledger.per_client, pipeline.privatize.params.get("delta", 0)
    for where, stated in (
        (("privatize", "params"), delta),
        (("ledger", "per_client"), cap.delta),
    ):
        try:
            refuse_delta(stated)
        except UserError as error:
            yield Problem(str(error), where)
    if max(pipeline.epsilon) > cap.epsilon or delta > cap.delta:
        message = f"a message spends more than a client has (epsilon {cap.epsilon:g})."
        yield Problem(message, ("ledger", "per_client"))


def _envelopes(pipeline: Pipeline) -> Iterator[Problem]:
    remote = pipeline.source.get("name") == REMOTE
    if remote == (pipeline.intake is None):
        message = "source remote and intake go together: envelopes bring the messages."
        yield Problem(message, ("source", "name"))
    if remote and pipeline.project.volunteers:
        message = "no volunteer is here; state centre and scale as numbers."
        yield Problem(message, ("project", "centre"))
    if pipeline.intake:
        yield from _waiting(pipeline)


def _waiting(pipeline: Pipeline) -> Iterator[Problem]:
    waits = pipeline.intake
    sizes = pipeline.clients.model_dump()
    for name, message_kind in _messages(pipeline):
        key = f"min_{name}s"
        least, invited = getattr(waits, key), message_kind.senders.count(sizes)
        if least and least > invited:
            message = f"{least} are waited for, but only {invited} are invited."
            yield Problem(message, ("intake", key))
    reports, train = waits.min_reports if waits else None, pipeline.train
    if reports and train and reports < train.size:
        message = f"fewer than the {train.size} that a learner takes."
        yield Problem(message, ("intake", "min_reports"))
    if waits and waits.online:
        yield from _batches(waits, pipeline.clients.vote)


def _messages(pipeline: Pipeline) -> Iterator[tuple[str, Message]]:
    for part in parts(pipeline):
        if part.protocol in PROTOCOLS:
            yield from messages(part.protocol).items()


def _batches(waits: Intake, invited: int) -> Iterator[Problem]:
    """Yield what would keep the votes of an open round from being folded in."""
    first = waits.min_votes or invited
    if first < waits.fold:
        message = f"{first} are too few to begin with; fold asks for {waits.fold}."
        yield Problem(message, ("intake", "min_votes"))
    if first <= invited < first + waits.fold:
        message = (
            f"no {waits.fold} votes can follow: {invited} are invited, and the round"
            f" waits for {first}; state a lower min_votes."
        )
        yield Problem(message, ("intake", "online"))
