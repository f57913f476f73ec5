"""Settings of MRMA resolved: several classes, and published definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from curvote.base.errors import Problem
from curvote.chain.axis import PipelineSettings
from curvote.chain.system import Part
from curvote.curves.basis import IDENTITY
from curvote.data import lookup
from curvote.systems.common import checks

# Each client answers for one class: other messages, so a protocol of its own.
CLASSES_PROTOCOL = "mrma_classes"


def resolve_classes(pipeline: PipelineSettings) -> tuple[Part]:
    """Return the settings, or those of `mrma_classes` under the same name."""
    if class_count(pipeline.source) == 2:
        return (Part(pipeline),)
    update = {"protocol": CLASSES_PROTOCOL, "label": pipeline.called}
    return (Part(pipeline.model_copy(update=update)),)


def check_classes(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Require clients enough for each class, and no printed table."""
    yield from checks.check_many_classes(pipeline)
    n_classes = class_count(pipeline.source)
    clients = pipeline.clients
    train = pipeline.train
    if n_classes == 2:
        return
    if pipeline.as_published:
        message = f"the printed tables know two classes, not {n_classes}."
        yield Problem(message, ("as_published",))
    if train and train.count * n_classes > clients.vote:
        message = (
            f"{train.count} classifiers of each of {n_classes} classes, but only"
            f" {clients.vote} clients vote."
        )
        yield Problem(message, ("train", "count"))
    if train and train.size * n_classes > clients.train:
        message = (
            f"{train.size} reports about each of {n_classes} classes, but only"
            f" {clients.train} train."
        )
        yield Problem(message, ("train", "size"))


def class_count(source: Mapping[str, Any]) -> int:
    """Return the number of classes of a source; 2 where none are listed."""
    return len(lookup.classes(source) or ()) or 2


Values = dict[str, Any]

# The printed rows of table A.1 that only an inconsistent slope explains.
INCONSISTENT_LEARNERS = ("logistic",)


def expand_published(values: Values) -> Values:
    """Return a configuration with ``as_published`` written out.

    Utility clipped to [0, 1] and classifiers weighted by its distance from 1/2; scores
    as the tables define them; twice the noise that is stated for the histogram; and a
    slope from coefficients without the inverse Gram matrix, judged on raw curves.
    """
    if not values.get("as_published"):
        return values
    aggregate = values.get("aggregate", {}) | {"weights": "distance"}
    overrides = {"aggregate": aggregate, "report": {"definitions": "published"}}
    return (
        values
        | overrides
        | {"published": {"histogram": True}, "project": _published_projection(values)}
    )


def _published_projection(values: Values) -> Values:
    """Return the representation by which the paper judged: raw curves.

    Method I takes the fitted numbers b for the slope's coefficients, so it judges
    b'Gc = sum_k b_k <x, phi_k> where b'c was fitted.
    """
    project: Values = values["project"]
    learner = (values["learner"] or {}).get("name")
    if project["basis"] == IDENTITY or learner is None:
        return project
    inconsistent = learner in INCONSISTENT_LEARNERS
    return project | {"judge": "inner_products" if inconsistent else "coefficients"}
