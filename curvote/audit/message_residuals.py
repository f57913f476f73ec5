"""Checks of messages: residuals, splits of the budget, others' records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from curvote.audit import residuals
from curvote.chain.stage import Columns
from curvote.client.report import Reporter
from curvote.mechanisms import make
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.mechanisms.one_of import OneOf
from curvote.mechanisms.privunit import PrivUnit
from curvote.protocols.cells import messages as cells
from curvote.protocols.direct.arms import directions_from_params
from curvote.protocols.majority.response import response_for
from curvote.protocols.message import ClientData, Message, message_of
from curvote.protocols.questions import answer_questions, one_against_rest_code
from curvote.protocols.sgd.messages import task_gradients
from curvote.representation.direction import Whitening
from curvote.representation.simplex import class_codes
from curvote.task import Task
from curvote.validate import FloatArray

if TYPE_CHECKING:
    from curvote.mechanisms.base import LabelMechanism


def residuals_of_message(
    task: Task,
    message: Message,
    data: ClientData,
    columns: Columns,
    rng: np.random.Generator,
) -> FloatArray | None:
    """Return residuals (n, k) of messages, None for another form."""
    form = _FORMS.get(" ".join(sorted(message.payload.model_fields)))
    return None if form is None else form(task, data, columns, rng)


def answering_data(task: Task, data: ClientData, columns: Columns) -> ClientData:
    """Return client data whose labels are the answers to the questions.

    It is 1 for yes; where no question is sent the label answers for itself.
    """
    if "question" not in columns:
        return data
    code = one_against_rest_code(len(task.classes))
    replies = answer_questions(code, columns["question"], data.labels)
    return replace(data, labels=(replies > 0).astype(np.int64))


def _report_residuals(
    task: Task, data: ClientData, columns: Columns, rng: np.random.Generator
) -> FloatArray | None:
    """Return residuals of numbers, label and question of reports."""
    reporter, truth = Reporter.for_task(task), answering_data(task, data, columns).signs
    features, z, out = reporter.features, data.z, columns["z"]
    if features.low == 0:
        z = (z + 1) / 2
    if features.unit_scale:
        out = (out + 1) / 2
    numbers = residuals.output_residuals(features, z, out, rng)
    bit = _truth_residuals(reporter.label, truth, columns["label"], rng)
    if numbers is None or bit is None:
        return None
    return np.hstack([numbers, bit, *_question_residuals(task, columns, rng)])


def _question_residuals(
    task: Task, columns: Columns, rng: np.random.Generator
) -> Iterator[FloatArray]:
    if "question" in columns:
        count, at = len(one_against_rest_code(len(task.classes))), columns["question"]
        yield residuals.uniform_between(at / count, (at + 1) / count, rng)[:, None]


def _label_residuals(
    task: Task, data: ClientData, columns: Columns, rng: np.random.Generator
) -> FloatArray | None:
    label_codes = columns["label"]
    noised = response_for(len(task.classes))
    mechanism, truth = (
        noised.make_mechanism(epsilon=task.epsilon),
        noised.encode(data.labels),
    )
    if isinstance(mechanism, BinaryRR):
        return _truth_residuals(mechanism, truth, label_codes, rng)
    return residuals.output_residuals(
        mechanism, truth.astype(np.float64), label_codes, rng
    )


def _vote_residuals(
    task: Task, data: ClientData, columns: Columns, rng: np.random.Generator
) -> FloatArray | None:
    answer_signs = np.where(columns["positive"], 1.0, -1.0)
    return _truth_residuals(
        BinaryRR(epsilon=task.epsilon), _candidate_signs(task, data), answer_signs, rng
    )


def _answer_residuals(
    task: Task, data: ClientData, columns: Columns, rng: np.random.Generator
) -> FloatArray | None:
    """Return residuals of the answer and of the question."""
    count, question = len(task.params["threshold"]), columns["question"]
    truth = cells.true_answers(task, data, question).astype(np.float64)
    word = residuals.output_residuals(
        cells.answer_mechanism(task), truth, columns["answer"], rng
    )
    question_residuals = residuals.uniform_between(
        question / count, (question + 1) / count, rng
    )
    return None if word is None else np.column_stack([word, question_residuals])


def _direction_residuals(
    task: Task, data: ClientData, columns: Columns, rng: np.random.Generator
) -> FloatArray | None:
    k = len(task.classes)
    encoder, z = directions_from_params(task.encoding.d, task.params, k), data.z
    if "matrix" in task.params:
        whitened = (task.params["matrix"], task.params["centre"])
        encoder, z = encoder.whitened, Whitening(*map(np.asarray, whitened)).apply(z)
    mechanism = PrivUnit(epsilon=task.epsilon, d=encoder.size)
    vectors = encoder.vectors(z, class_codes(data.labels, k))
    return residuals.output_residuals(mechanism, vectors, columns["direction"], rng)


def _named_residuals(
    task: Task, data: ClientData, columns: Columns, rng: np.random.Generator
) -> FloatArray | None:
    encoder, k = directions_from_params(task.encoding.d, task.params), len(task.classes)
    mechanism = OneOf(epsilon=task.epsilon, d=k * encoder.size, n_classes=k)
    u = encoder.vectors(data.z, np.ones(len(data.z)))
    turns = (columns["named"] - data.labels.astype(np.int64)) % k
    return residuals.cap_residuals(
        mechanism, u, columns["direction"] * mechanism.m, turns, rng
    )


def _gradient_residuals(
    task: Task, data: ClientData, columns: Columns, rng: np.random.Generator
) -> FloatArray | None:
    encoder, n_classes = task_gradients(task), len(task.classes)
    vectors = encoder.vectors(data.z, class_codes(data.labels, n_classes))
    mechanism = PrivUnit(epsilon=task.epsilon, d=encoder.size)
    return residuals.output_residuals(mechanism, vectors, columns["gradient"], rng)


def _code_residuals(
    task: Any, data: ClientData, columns: Columns, rng: np.random.Generator
) -> FloatArray | None:
    """Return residuals of codes, by a mechanism built from the task."""
    options = {"n_classes": len(task.classes), **task.params}
    mechanism = cast(
        "LabelMechanism", make(task.encoder, epsilon=task.epsilon, **options)
    )
    noised = np.asarray(columns["code"]).astype(mechanism.dtype)
    return residuals.output_residuals(mechanism, data.labels, noised, rng)


def _sum_residuals(
    task: Any, data: ClientData, columns: Columns, rng: np.random.Generator
) -> FloatArray | None:
    """Return residuals of noise on one table's sums."""
    from curvote.audit.servers.subject import noise_uniforms

    message: Any = message_of(task)
    sigma = message.noise(task, len(data.z)).sigma
    noise = columns["values"] - message.sums(task, data)
    return noise_uniforms(noise, np.array([[sigma]]), rng)


def _truth_residuals(
    mechanism: BinaryRR,
    truth: NDArray[Any],
    reported: NDArray[Any],
    rng: np.random.Generator,
) -> FloatArray | None:
    """Return residuals of whether the truth was reported.

    So bits without noise lie on one side, and few of them, of both kinds, are seen.
    """
    ones = np.ones(len(truth))
    return residuals.output_residuals(
        mechanism, ones, reported.astype(np.float64) * truth, rng
    )


def _candidate_signs(task: Task, data: ClientData) -> FloatArray:
    """Return +1 where the candidate is right for the client, else -1.

    Than it is for a client of some other class.
    """
    yes = np.ones(len(data.z), dtype=bool)
    votes = {"learner": np.asarray(data.candidate), "positive": yes}
    other_classes = [
        replace(data, labels=np.full(len(yes), k)) for k in range(len(task.classes))
    ]
    ratio = partial(message_of(task).log_ratio, task, data)
    loss = np.max([ratio(other, votes) for other in other_classes], axis=0)
    return np.where(loss > 0, 1.0, -1.0)


# By the names of a payload's fields.
_FORMS: Mapping[str, Callable[..., FloatArray | None]] = {
    "label z": _report_residuals,
    "label question z": _report_residuals,
    "direction": _direction_residuals,
    "direction named": _named_residuals,
    "gradient": _gradient_residuals,
    "learner positive": _vote_residuals,
    "answer question": _answer_residuals,
    "label": _label_residuals,
    "code record": _code_residuals,
    "n server values": _sum_residuals,
}
