"""Broken twins of the cell message: cells made of records, and two answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from curvote.audit.examples import example_task as example
from curvote.audit.message_subject import MessageSubject, record_subject_of
from curvote.chain.stage import Columns
from curvote.entropy import Entropy
from curvote.protocols.cells.messages import Answer, answer_mechanism, true_answers
from curvote.protocols.counts.messages import COUNTS_ANSWER
from curvote.protocols.message import ClientData
from curvote.task import Task

Array = NDArray[np.float64]


class BinsFromData(Answer):
    """Puts the edges of bins at the clients' own quantiles, which nobody hid."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return answers about bins that the other clients' records moved."""
        thresholds = np.asarray(task.params["threshold"])
        shares = np.arange(1, thresholds.shape[1] + 1) / (thresholds.shape[1] + 1)
        edges = np.quantile(data.z, shares, axis=0).T
        params = {**task.params, "threshold": edges.tolist()}
        return super().draw(replace(task, params=params), data, entropy)


class TwoFeatures(Answer):
    """Asks each client about two numbers, with the whole budget for each."""

    def max_privacy_loss(self, task: Task) -> float:
        """Return the loss of both answers together."""
        return 2 * super().max_privacy_loss(task)

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return an answer to one question, and one to the question after it."""
        columns = super().draw(task, data, entropy)
        second_truth = true_answers(
            task, data, _next_question(task, columns["question"])
        )
        return {
            **columns,
            "second": answer_mechanism(task).randomize(second_truth, entropy),
        }

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return the loss of both answers together."""
        question = _next_question(task, messages["question"])
        second_message = {"question": question, "answer": messages["second"]}
        loss = super().log_ratio(task, first, second, messages)
        return loss + super().log_ratio(task, first, second, second_message)


def _next_question(task: Task, question: NDArray[np.int64]) -> NDArray[np.int64]:
    return (question + 1) % len(task.params["threshold"])


def _cell_twin(kind: Callable[..., Answer], epsilon: float) -> MessageSubject:
    message = kind(
        what=COUNTS_ANSWER.what, nominal_partitions=COUNTS_ANSWER.nominal_partitions
    )
    honest = record_subject_of(example("counts", message.name, epsilon))
    return replace(honest, message=message)


def cell_twins() -> dict[str, Callable[[float], MessageSubject]]:
    """Return the twins by name."""
    kinds = {"bins_from_data": BinsFromData, "two_features": TwoFeatures}
    return {name: partial(_cell_twin, kind) for name, kind in kinds.items()}
