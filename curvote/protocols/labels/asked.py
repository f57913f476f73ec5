"""What is asked of the owner of a label, at each level and in each round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from curvote.chain.axis import Settings
from curvote.chain.stage import Facts, Inputs, Params
from curvote.classes import Classes
from curvote.labels.encoders import stated
from curvote.labels.task import ASKS, Task
from curvote.protocols.labels.two.messages import LIKELY, PROTOCOL


def asked(settings: Settings, read: Callable[[str], Facts]) -> Iterator[Task]:
    """Yield the task of each level."""
    classes = read("ingest")["classes"]
    for epsilon in settings.epsilon:
        yield single(Classes(classes), epsilon, settings.labels.encoder)


def asked_twice(settings: Settings, read: Callable[[str], Facts]) -> Iterator[Task]:
    """Yield the tasks of both rounds at each level."""
    classes = read("ingest")["classes"]
    for epsilon in settings.epsilon:
        yield first(classes, epsilon)
        yield second(classes, epsilon)


def task_of(inputs: Inputs, params: Params) -> Task:
    """Return the task of the round that a stage draws: all of it is public."""
    classes = Classes(inputs["ingest"].facts["classes"])
    epsilon, number = params["epsilon"], params.get("number", 1)
    return single(classes, epsilon, params["labels.encoder"], number)


def single(classes: Classes, epsilon: float, encoder: str, number: int = 1) -> Task:
    """Return what one round asks, with the parameters that were chosen for it."""
    task = Task(classes, epsilon, encoder, number=number)
    return replace(task, params=stated(task.noise()))


def first(classes: Classes, epsilon: float, number: int = 1) -> Task:
    """Return what the first of two rounds asks."""
    return Task(classes, epsilon, "k_rr", {}, number, ASKS, PROTOCOL)


def second(classes: Classes, epsilon: float, number: int = 1) -> Task:
    """Return what the second of two rounds asks."""
    return Task(classes, epsilon, "rr_with_prior", {}, number, LIKELY, PROTOCOL)
