"""Tasks for the owners of labels, at each level and in each round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from curvote.chain.axis import PipelineSettings
from curvote.chain.stage import Inputs, Metadata, Params
from curvote.classes import Classes
from curvote.labels.encoders import explicit_params
from curvote.labels.task import ASKS, Task
from curvote.protocols.labels.two.messages import LIKELY, TWO_ROUNDS


def tasks_by_level(
    settings: PipelineSettings, read: Callable[[str], Metadata]
) -> Iterator[Task]:
    """Yield the task of each level of epsilon."""
    classes = read("ingest")["classes"]
    for epsilon in settings.epsilon:
        yield single_round_task(Classes(classes), epsilon, settings.labels.encoder)


def tasks_of_two_rounds(
    settings: PipelineSettings, read: Callable[[str], Metadata]
) -> Iterator[Task]:
    """Yield the tasks of both rounds at each level."""
    classes = read("ingest")["classes"]
    for epsilon in settings.epsilon:
        yield first_round_task(classes, epsilon)
        yield second_round_task(classes, epsilon)


def task_of(inputs: Inputs, params: Params) -> Task:
    """Return the task of the round that a stage draws: all of it is public."""
    classes = Classes(inputs["ingest"].metadata["classes"])
    epsilon, number = params["epsilon"], params.get("number", 1)
    return single_round_task(classes, epsilon, params["labels.encoder"], number)


def single_round_task(
    classes: Classes, epsilon: float, encoder: str, number: int = 1
) -> Task:
    """Return the task of a single round, with the parameters chosen for it."""
    task = Task(classes, epsilon, encoder, number=number)
    return replace(task, params=explicit_params(task.noise()))


def first_round_task(classes: Classes, epsilon: float, number: int = 1) -> Task:
    """Return the task of the first of two rounds."""
    return Task(classes, epsilon, "k_rr", {}, number, ASKS, TWO_ROUNDS)


def second_round_task(classes: Classes, epsilon: float, number: int = 1) -> Task:
    """Return the task of the second of two rounds."""
    return Task(classes, epsilon, "rr_with_prior", {}, number, LIKELY, TWO_ROUNDS)
