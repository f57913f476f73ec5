"""Checks across keys and registries: combinations of settings that cannot work."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from curvote.chain.lookup import find_system
from curvote.chain.registry import SYSTEMS
from curvote.datasets.lookup import is_remote, module
from curvote.datasets.registry import DATASETS
from curvote.errors import Problem, UserError, did_you_mean
from curvote.privacy import refuse_delta
from curvote.protocols.sizes import resolve_sizes
from curvote.run.config.form import validation_problems
from curvote.run.config.form_words import quote_value
from curvote.run.config.schema import Pipeline


def meaning_problems(pipeline: Pipeline) -> list[Problem]:
    """Return all problems of a pipeline whose keys are each well formed."""
    problems = [*_source_problems(pipeline)]
    if not problems:  # axes may be those of the source, such as its servers
        problems += _repeated_values(pipeline)
    source_valid = not problems
    if source_valid:  # a system's own checks need a source that is right
        problems += _system_problems(pipeline)
        places = {problem.where for problem in problems}
        problems += (
            candidate
            for candidate in _empty_axes(pipeline)
            if candidate.where not in places
        )
    return [*problems, *_production_problems(pipeline, source_valid)]


def _system_problems(pipeline: Pipeline) -> list[Problem]:
    """Return the problems that the system finds, for each size it may take."""
    chain = find_system(pipeline.protocol)
    try:
        sized_settings = [part.settings for part in resolve_sizes(pipeline)]
    except UserError as error:
        return [*error.problems]
    every = (
        problem for settings in sized_settings for problem in chain.checks(settings)
    )
    return list(dict.fromkeys(every))


def unknown_system_problems(name: str) -> Iterator[Problem]:
    """Yield a problem if the name of a system is not known."""
    if name not in SYSTEMS:
        hint = did_you_mean(name, SYSTEMS)
        yield Problem(f"{name!r} is not known.{hint}", ("protocol",))


def _source_problems(pipeline: Pipeline) -> Iterator[Problem]:
    name = pipeline.source.get("name")
    if not isinstance(name, str) or name not in DATASETS:
        hint = did_you_mean(str(name), DATASETS)
        problem = "is missing" if name is None else f"{quote_value(name)} is not known"
        yield Problem(f"{problem}.{hint}", ("source", "name"))
        return
    form = module(name).Parameters
    try:
        form.model_validate(pipeline.source)
    except ValidationError as error:
        yield from validation_problems(form, error, pipeline.source, ("source",))
    except UserError as error:
        yield Problem(str(error), ("source",))


def _repeated_values(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield a problem for each axis on which a value stands twice."""
    for axis in find_system(pipeline.protocol).axes:
        values = [str(value) for value in axis.values(pipeline)]
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            yield Problem(f"{', '.join(twice)} stands twice.", (axis.key,))


def _empty_axes(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield a problem for each axis without values."""
    for axis in find_system(pipeline.protocol).axes:
        if not axis.values(pipeline):
            yield Problem("is empty; list one value at least.", (axis.key,))


def _production_problems(pipeline: Pipeline, source_valid: bool) -> Iterator[Problem]:
    """Yield what would make a release ambiguous, unbounded or impossible.

    What a rule would choose is asked only where source and axes are ``source_valid``.
    """
    if not pipeline.production:
        yield from _study_only_problems(pipeline)
        return
    chain = find_system(pipeline.protocol)
    open_size = (
        [part for part in resolve_sizes(pipeline) if part.reason]
        if source_valid
        else []
    )
    if open_size:
        message = (
            "a release states its size, so that no later rule makes another one of it:"
            f" {open_size[0].method} is what the rule takes today."
        )
        yield Problem(message, ("project", "size"))
    elif source_valid and (
        open_arm := [part for part in chain.resolve_parts(pipeline) if part.reason]
    ):
        part = open_arm[0]
        message = (
            "a release names its arm, so that no later rule makes another one of it:"
            f" {part.method} (protocol: {part.settings.protocol}) is what the rule"
            " takes today."
        )
        yield Problem(message, ("protocol",))
    elif not chain.production:
        message = f"{pipeline.protocol} is for studies only."
        yield Problem(message, ("protocol",))
    yield from _identifier_problems(pipeline)
    yield from _single_setting_problems(pipeline)
    yield from _ledger_problems(pipeline)
    yield from _intake_problems(pipeline)


def _study_only_problems(pipeline: Pipeline) -> Iterator[Problem]:
    for key in ("ledger", "intake"):
        if getattr(pipeline, key) is not None:
            message = "only a pipeline with mode: production has one."
            yield Problem(message, (key,))


def _identifier_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield a problem if a user's file has no ids: row numbers are not stable."""
    name = pipeline.source.get("name")
    user_file = name in DATASETS and getattr(module(name), "GIVEN", False)
    if user_file and not (is_remote(pipeline.source) or pipeline.source.get("id")):
        message = "production needs the column whose ids stay with their clients: id."
        yield Problem(message, ("source",))


def _single_setting_problems(pipeline: Pipeline) -> Iterator[Problem]:
    for key in ("grid", "protocols", "as_published"):
        if getattr(pipeline, key, None):
            message = "belongs to studies; a release has one setting, the right one."
            yield Problem(message, (key,))
    chain = find_system(pipeline.protocol)
    used = {name for stage in chain.production for name in stage.axes}
    # What a later stage reads for all values at once tells senders apart, no more.
    inputs = (name for stage in chain.production for name in stage.inputs)
    used -= {name.partition("@")[2] for name in inputs}
    for axis in chain.axes:
        count = len(axis.values(pipeline))
        if axis.name in used and count != 1:
            message = f"production takes exactly one; {count} are given."
            yield Problem(message, (axis.key,))


def _ledger_problems(pipeline: Pipeline) -> Iterator[Problem]:
    away = _records_elsewhere(pipeline)
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
    for where, delta_value in (
        (("privatize", "params"), delta),
        (("ledger", "per_client"), cap.delta),
    ):
        try:
            refuse_delta(delta_value)
        except UserError as error:
            yield Problem(str(error), where)
    if max(pipeline.epsilon) > cap.epsilon or delta > cap.delta:
        message = f"a message spends more than a client has (epsilon {cap.epsilon:g})."
        yield Problem(message, ("ledger", "per_client"))


def _intake_problems(pipeline: Pipeline) -> Iterator[Problem]:
    away = _records_elsewhere(pipeline)
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


def _records_elsewhere(pipeline: Pipeline) -> bool:
    """Return whether the records stay with their owners."""
    return pipeline.source.get("name") in DATASETS and is_remote(pipeline.source)
