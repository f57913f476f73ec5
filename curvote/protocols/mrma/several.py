"""What `mrma` stands for where its source has more than two classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from curvote.chain.axis import Settings
from curvote.chain.system import Part
from curvote.datasets import lookup
from curvote.errors import Problem
from curvote.protocols import checks

# Each client answers for one class: other messages, so a protocol of its own.
CLASSES = "mrma_classes"


def parts(pipeline: Settings) -> tuple[Part]:
    """Return the settings as they are, or those of `mrma_classes` under their name."""
    if number(pipeline.source) == 2:
        return (Part(pipeline),)
    update = {"protocol": CLASSES, "label": pipeline.called}
    return (Part(pipeline.model_copy(update=update)),)


def checked(pipeline: Settings) -> Iterator[Problem]:
    """Ask for clients enough for each of several classes, and for no printed table."""
    yield from checks.many(pipeline)
    n_classes, clients, train = (
        number(pipeline.source),
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


def number(source: Mapping[str, Any]) -> int:
    """Return the number of classes of a source; those that list none have two."""
    return len(lookup.classes(source) or ()) or 2
