"""Settings of MRMA resolved: several classes, and published definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from curvote.chain.axis import PipelineSettings
from curvote.chain.system import Part
from curvote.datasets import lookup
from curvote.errors import Problem
from curvote.protocols import checks

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
    n_classes, clients, train = (
        class_count(pipeline.source),
        pipeline.clients,
        pipeline.train,
    )
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
