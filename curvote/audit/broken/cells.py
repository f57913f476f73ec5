"""Twins of a noised cell and class: cells that records made, and two answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from curvote.audit.examples import task as example
from curvote.audit.message_subject import MessageSubject, of_record
from curvote.chain.stage import Columns
from curvote.entropy import Entropy
from curvote.protocols.cells.messages import Answer, mechanism, truth
from curvote.protocols.counts.messages import ANSWER
from curvote.protocols.message import Known
from curvote.task import Task

Array = NDArray[np.float64]


class BinsFromData(Answer):
    """Puts the edges of bins at the clients' own quantiles, which nobody hid."""

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return answers about bins that the other clients' records moved."""
        stated = np.asarray(task.params["threshold"])
        shares = np.arange(1, stated.shape[1] + 1) / (stated.shape[1] + 1)
        edges = np.quantile(known.z, shares, axis=0).T
        own = {**task.params, "threshold": edges.tolist()}
        return super().draw(replace(task, params=own), known, entropy)


class TwoFeatures(Answer):
    """Asks each client about two numbers, with the whole budget for each."""

    def worst_loss(self, task: Task) -> float:
        """Return the loss of both answers together."""
        return 2 * super().worst_loss(task)

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return an answer to one question, and one to the question after it."""
        sent = super().draw(task, known, entropy)
        said = truth(task, known, _next(task, sent["question"]))
        return {**sent, "second": mechanism(task).randomize(said, entropy)}

    def log_ratio(
        self, task: Task, one: Known, other: Known, messages: Columns
    ) -> Array:
        """Return the loss of both answers together."""
        question = _next(task, messages["question"])
        second = {"question": question, "answer": messages["second"]}
        first = super().log_ratio(task, one, other, messages)
        return first + super().log_ratio(task, one, other, second)


def _next(task: Task, question: NDArray[np.int64]) -> NDArray[np.int64]:
    return (question + 1) % len(task.params["threshold"])


def _twin(kind: Callable[..., Answer], epsilon: float) -> MessageSubject:
    message = kind(what=ANSWER.what, stand_in=ANSWER.stand_in)
    honest = of_record(example("counts", message.name, epsilon))
    return replace(honest, message=message)


def twins() -> dict[str, Callable[[float], MessageSubject]]:
    """Return the twins by name."""
    kinds = {"bins_from_data": BinsFromData, "two_features": TwoFeatures}
    return {name: partial(_twin, kind) for name, kind in kinds.items()}
