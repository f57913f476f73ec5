"""Checks that need several keys or a registry: what the settings mean together."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import numpy as np
from pydantic import ValidationError

from curvote.datasets.registry import DATASETS
from curvote.errors import Problem, UserError, Where, did_you_mean
from curvote.mechanisms.registry import MECHANISMS
from curvote.protocols.registry import PROTOCOLS
from curvote.protocols.roles import too_many
from curvote.representation import basis
from curvote.representation.rescale import RESCALES, rescale
from curvote.run.config.choosing import AUTO
from curvote.run.config.meaning_production import production_problems
from curvote.run.config.meaning_protocol import protocol_problems, source_problems
from curvote.run.config.schema import Pipeline, Representation
from curvote.server.learners.fitting import check

BASES = [*basis.BASES, basis.IDENTITY, basis.VALUES]


def meaning_problems(pipeline: Pipeline) -> list[Problem]:
    """Return everything that is wrong although each key is well formed."""
    problems = [*_names(pipeline), *_learners(pipeline), *_source(pipeline)]
    problems += [*_representation(pipeline), *_repeats(pipeline)]
    problems += protocol_problems(pipeline)
    if not problems:  # they need a source that is right
        problems += source_problems(pipeline)
    return [*problems, *production_problems(pipeline)]


def _names(pipeline: Pipeline) -> Iterator[Problem]:
    project = pipeline.project
    given: list[tuple[Where, str, list[str]]] = [
        (("protocol",), pipeline.protocol, [*PROTOCOLS, AUTO]),
        (("privatize", "mechanism"), pipeline.privatize.mechanism, list(MECHANISMS)),
        (("project", "basis"), project.basis, BASES),
        (("project", "rescale"), project.rescale, list(RESCALES)),
    ]
    for where, name, known in given:
        if name not in known:
            yield Problem(f"{name!r} is not known.{did_you_mean(name, known)}", where)


def _learners(pipeline: Pipeline) -> Iterator[Problem]:
    for index, learner in enumerate(pipeline.learners):
        try:
            check(learner.name, learner.params)
        except UserError as error:
            yield Problem(str(error), ("learners", index))


def _source(pipeline: Pipeline) -> Iterator[Problem]:
    name = pipeline.source.get("name")
    if name not in DATASETS:
        hint = did_you_mean(str(name), DATASETS)
        yield Problem(f"{name!r} is not known.{hint}", ("source", "name"))
        return
    dataset = import_module(DATASETS[name])
    try:
        parameters = dataset.Parameters.model_validate(pipeline.source)
    except ValidationError as error:
        known = list(dataset.Parameters.model_fields)
        for detail in error.errors(include_url=False):
            key = str((*detail["loc"], "name")[0])
            unknown = detail["type"] == "extra_forbidden"
            hint = did_you_mean(key, known) if unknown else f" {detail['msg']}."
            yield Problem(f"{key} is not right.{hint}", ("source", key))
        return
    except UserError as error:
        yield Problem(str(error), ("source",))
        return
    there = dataset.size(parameters)
    sizes = pipeline.clients.model_dump()
    if there is not None and sum(sizes.values()) > there:
        yield too_many(sizes, there).problems[0]


def _representation(pipeline: Pipeline) -> Iterator[Problem]:
    project = pipeline.project
    yield from _size(project)
    if project.bounds != "stated" and project.rescale != "min_max":
        yield Problem("bounds belong to rescale: min_max.", ("project", "bounds"))
    try:
        _try_constants(project)
    except UserError as error:
        yield Problem(str(error), ("project", "rescale"))
    if project.volunteers and pipeline.clients.public < 2:
        message = "constants from volunteers need at least 2 of them (clients.public)."
        yield Problem(message, ("clients", "public"))


def _size(project: Representation) -> Iterator[Problem]:
    """Check the size; feature vectors have the one that their source gives them."""
    if project.basis in (basis.IDENTITY, basis.VALUES):
        if project.size is not None or project.coordinates != "coefficients":
            message = f"{project.basis} keeps what is there: no size, no coordinates."
            yield Problem(message, ("project", "size"))
        return
    if project.size is None:
        yield Problem("is missing.", ("project", "size"))
        return
    try:
        basis.check_size(project.basis, project.size, project.order)
    except UserError as error:
        yield Problem(str(error), ("project", "size"))


def _try_constants(project: Representation) -> None:
    """Rescale a record of zeros with the constants that the configuration states."""
    defaults = {"centre": 0.0, "scale": 1.0}
    constants = {
        name: defaults[name] if isinstance(value, str) else value
        for name in RESCALES.get(project.rescale, ())
        for value in [getattr(project, name)]
    }
    if project.rescale in RESCALES:
        rescale(project.rescale, np.zeros((1, _width(project))), constants)


def _width(project: Representation) -> int:
    """Return d, or what the given constants take it for where the source decides."""
    given = (project.centre, project.scale, project.lower, project.upper)
    lists = [len(value) for value in given if isinstance(value, list)]
    return project.size or max(lists, default=1)


def _repeats(pipeline: Pipeline) -> Iterator[Problem]:
    labels = [learner.label for learner in pipeline.learners]
    for key, values in (("epsilon", pipeline.epsilon), ("learners", labels)):
        twice = sorted({str(v) for v in values if list(values).count(v) > 1})
        if twice:
            yield Problem(f"{', '.join(twice)} stands twice.", (key,))
