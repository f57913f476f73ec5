"""Checks of settings that several systems share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from curvote.chain.axis import PipelineSettings
from curvote.datasets import lookup
from curvote.errors import Problem, UserError, did_you_mean
from curvote.protocols.settings import Representation
from curvote.representation import basis, cosines
from curvote.representation.rescale import RESCALING_CONSTANTS, rescale

_BOUND_KEYS = {"lower", "upper", "bounds"}
BASIS_NAMES = [*basis.BASES, basis.IDENTITY, basis.VALUES, cosines.COSINES]


def check_representation(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Check the names, the size, and the constants that are stated."""
    project = pipeline.project
    for key, allowed in (
        ("basis", BASIS_NAMES),
        ("rescale", list(RESCALING_CONSTANTS)),
    ):
        name = getattr(project, key)
        if name not in allowed:
            hint = did_you_mean(name, allowed)
            yield Problem(f"{name!r} is not known.{hint}", ("project", key))
    yield from _check_size(project)
    if project.basis == cosines.COSINES:
        yield from _check_image_size(pipeline)
    if project.bounds != "stated" and project.rescale != "min_max":
        yield Problem("bounds belong to rescale: min_max.", ("project", "bounds"))
    if project.rescale == "min_max" and not _BOUND_KEYS & project.model_fields_set:
        message = (
            "min_max needs bounds: say bounds: public for the source's, or lower and"
            " upper."
        )
        yield Problem(message, ("project", "rescale"))
    try:
        _try_constants(project)
    except UserError as error:
        yield Problem(str(error), ("project", "rescale"))
    if project.volunteers and pipeline.clients.public < 2:
        message = "constants from volunteers need at least 2 of them (clients.public)."
        yield Problem(message, ("clients", "public"))


def _check_size(project: Representation) -> Iterator[Problem]:
    """Check the size; feature vectors have the one that their source gives them."""
    if project.basis in (basis.IDENTITY, basis.VALUES):
        if project.size is not None or project.coordinates != "coefficients":
            message = f"{project.basis} keeps what is there: no size, no coordinates."
            yield Problem(message, ("project", "size"))
        return
    if project.width is None:
        yield Problem("is missing.", ("project", "size"))
        return
    try:
        basis.check_size(project.basis, project.width, project.order)
    except UserError as error:
        yield Problem(str(error), ("project", "size"))


def _check_image_size(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Ask for square images with pixels enough, where their size is known."""
    dataset, parameters = lookup.resolve_source(pipeline.source)
    points = dataset.width(parameters)
    if points is not None:
        try:
            cosines.lowest_frequencies(points, pipeline.project.width or 1)
        except UserError as error:
            yield from error.problems


def _try_constants(project: Representation) -> None:
    """Rescale a record of zeros with the constants that the configuration states."""
    defaults = {"centre": 0.0, "scale": 1.0}
    constants = {
        name: defaults[name] if isinstance(value, str) else value
        for name in RESCALING_CONSTANTS.get(project.rescale, ())
        for value in [getattr(project, name)]
    }
    if project.rescale in RESCALING_CONSTANTS:
        rescale(project.rescale, np.zeros((1, _assumed_width(project))), constants)


def _assumed_width(project: Representation) -> int:
    """Return d, or the length of stated constants where the source decides."""
    constants = (project.centre, project.scale, project.lower, project.upper)
    lists = [len(value) for value in constants if isinstance(value, list)]
    return project.width or max(lists, default=1)
