"""Checks that need several keys or a registry: what the settings mean together."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from curvote.chain.lookup import system
from curvote.chain.registry import SYSTEMS
from curvote.datasets.lookup import module, remote
from curvote.datasets.registry import DATASETS
from curvote.errors import Problem, UserError, did_you_mean
from curvote.privacy import refuse_delta
from curvote.protocols.sizes import sized
from curvote.run.config.form import problems_of
from curvote.run.config.form_words import shown
from curvote.run.config.schema import Pipeline


def meaning_problems(pipeline: Pipeline) -> list[Problem]:
    """Return everything that is wrong although each key is well formed."""
    problems = [*_source(pipeline)]
    if not problems:  # axes may be those of the source, such as its servers
        problems += _repeats(pipeline)
    right = not problems
    if right:  # a system's own checks need a source that is right
        problems += _checks(pipeline)
        told = {problem.where for problem in problems}
        problems += (each for each in _empty(pipeline) if each.where not in told)
    return [*problems, *_production(pipeline, right)]


def _checks(pipeline: Pipeline) -> list[Problem]:
    """Return what the system finds wrong with what it is asked, at any size."""
    own = system(pipeline.protocol)
    try:
        asked = [part.settings for part in sized(pipeline)]
    except UserError as error:
        return [*error.problems]
    every = (problem for settings in asked for problem in own.checks(settings))
    return list(dict.fromkeys(every))


def unknown(name: str) -> Iterator[Problem]:
    """Yield what is wrong with the name of a system."""
    if name not in SYSTEMS:
        hint = did_you_mean(name, SYSTEMS)
        yield Problem(f"{name!r} is not known.{hint}", ("protocol",))


def _source(pipeline: Pipeline) -> Iterator[Problem]:
    name = pipeline.source.get("name")
    if not isinstance(name, str) or name not in DATASETS:
        hint = did_you_mean(str(name), DATASETS)
        said = "is missing" if name is None else f"{shown(name)} is not known"
        yield Problem(f"{said}.{hint}", ("source", "name"))
        return
    form = module(name).Parameters
    try:
        form.model_validate(pipeline.source)
    except ValidationError as error:
        yield from problems_of(form, error, pipeline.source, ("source",))
    except UserError as error:
        yield Problem(str(error), ("source",))


def _repeats(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield values that stand twice on an axis."""
    for axis in system(pipeline.protocol).axes:
        values = [str(value) for value in axis.values(pipeline)]
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            yield Problem(f"{', '.join(twice)} stands twice.", (axis.key,))


def _empty(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield axes without values: they would leave nothing to run."""
    for axis in system(pipeline.protocol).axes:
        if not axis.values(pipeline):
            yield Problem("is empty; list one value at least.", (axis.key,))


def _production(pipeline: Pipeline, right: bool) -> Iterator[Problem]:
    """Yield what would make a release ambiguous, unbounded or impossible.

    What a rule would choose is asked only where source and axes are ``right``.
    """
    if not pipeline.production:
        yield from _study_only(pipeline)
        return
    own = system(pipeline.protocol)
    open_size = [part for part in sized(pipeline) if part.reason] if right else []
    if open_size:
        message = (
            "a release states its size, so that no later rule makes another one of it:"
            f" {open_size[0].method} is what the rule takes today."
        )
        yield Problem(message, ("project", "size"))
    elif right and (open_arm := [part for part in own.parts(pipeline) if part.reason]):
        part = open_arm[0]
        message = (
            "a release names its arm, so that no later rule makes another one of it:"
            f" {part.method} (protocol: {part.settings.protocol}) is what the rule"
            " takes today."
        )
        yield Problem(message, ("protocol",))
    elif not own.production:
        message = f"{pipeline.protocol} is for studies only."
        yield Problem(message, ("protocol",))
    yield from _identified(pipeline)
    yield from _exactly_one(pipeline)
    yield from _accounts(pipeline)
    yield from _envelopes(pipeline)


def _study_only(pipeline: Pipeline) -> Iterator[Problem]:
    for key in ("ledger", "intake"):
        if getattr(pipeline, key) is not None:
            message = "only a pipeline with mode: production has one."
            yield Problem(message, (key,))


def _identified(pipeline: Pipeline) -> Iterator[Problem]:
    """Row numbers name other people as soon as a file is sorted or a row is added."""
    name = pipeline.source.get("name")
    given = name in DATASETS and getattr(module(name), "GIVEN", False)
    if given and not (remote(pipeline.source) or pipeline.source.get("id")):
        message = "production needs the column whose ids stay with their clients: id."
        yield Problem(message, ("source",))


def _exactly_one(pipeline: Pipeline) -> Iterator[Problem]:
    for key in ("grid", "protocols", "as_published"):
        if getattr(pipeline, key, None):
            message = "belongs to studies; a release has one setting, the right one."
            yield Problem(message, (key,))
    own = system(pipeline.protocol)
    used = {name for stage in own.production for name in stage.axes}
    # What a later stage reads for all values at once tells senders apart, no more.
    every = (name for stage in own.production for name in stage.inputs)
    used -= {name.partition("@")[2] for name in every}
    for axis in own.axes:
        count = len(axis.values(pipeline))
        if axis.name in used and count != 1:
            message = f"production takes exactly one; {count} are given."
            yield Problem(message, (axis.key,))


def _accounts(pipeline: Pipeline) -> Iterator[Problem]:
    away = _away(pipeline)
    if pipeline.intake or away:
        if pipeline.ledger:
            message = (
                "where messages come by envelope every client keeps a ledger of its"
                " own: take `ledger` out; `curvote client init --cap` states its cap."
            )
            yield Problem(message, ("ledger",))
        return
    if pipeline.ledger is None:
        message = "production needs a cap: ledger: {per_client: {epsilon: 2}}."
        yield Problem(message, ("mode",))
        return
    cap, privatize = pipeline.ledger.per_client, getattr(pipeline, "privatize", None)
    delta = privatize.params.get("delta", 0) if privatize else 0
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
    away = _away(pipeline)
    if away and pipeline.intake is None:
        message = (
            "the records stay with their owners, whose messages come by envelope: write"
            " intake: {}, which waits for everybody who is invited."
        )
        yield Problem(message, ("source", "name"))
    elif pipeline.intake and not away:
        message = (
            "an intake takes messages about records that are elsewhere: write"
            " source: {name: remote, points: 50, negative: A, positive: B}, or `ledger`"
            " in place of `intake` where the records are here."
        )
        yield Problem(message, ("source", "name"))


def _away(pipeline: Pipeline) -> bool:
    """Say whether the records stay with their owners."""
    return pipeline.source.get("name") in DATASETS and remote(pipeline.source)
