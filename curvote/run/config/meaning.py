"""Checks that need several keys or a registry: what the settings mean together."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from pydantic import ValidationError

from curvote.chain.lookup import system
from curvote.chain.registry import SYSTEMS
from curvote.datasets.registry import DATASETS
from curvote.errors import Problem, UserError, did_you_mean
from curvote.run.config.meaning_production import production_problems
from curvote.run.config.schema import Pipeline


def meaning_problems(pipeline: Pipeline) -> list[Problem]:
    """Return everything that is wrong although each key is well formed."""
    problems = [*_source(pipeline), *_repeats(pipeline)]
    if not problems:  # a system's own checks need a source that is right
        problems += system(pipeline.protocol).checks(pipeline)
        told = {problem.where for problem in problems}
        problems += (each for each in _empty(pipeline) if each.where not in told)
    return [*problems, *production_problems(pipeline)]


def unknown(name: str) -> Iterator[Problem]:
    """Yield what is wrong with the name of a system."""
    if name not in SYSTEMS:
        hint = did_you_mean(name, SYSTEMS)
        yield Problem(f"{name!r} is not known.{hint}", ("protocol",))


def _source(pipeline: Pipeline) -> Iterator[Problem]:
    name = pipeline.source.get("name")
    if name not in DATASETS:
        hint = did_you_mean(str(name), DATASETS)
        yield Problem(f"{name!r} is not known.{hint}", ("source", "name"))
        return
    dataset = import_module(DATASETS[name])
    try:
        dataset.Parameters.model_validate(pipeline.source)
    except ValidationError as error:
        known = list(dataset.Parameters.model_fields)
        for detail in error.errors(include_url=False):
            key = str((*detail["loc"], "name")[0])
            unknown = detail["type"] == "extra_forbidden"
            hint = did_you_mean(key, known) if unknown else f" {detail['msg']}."
            yield Problem(f"{key} is not right.{hint}", ("source", key))
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
