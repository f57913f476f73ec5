"""Whole messages with the input taken out: see `residuals`."""

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
from curvote.protocols.direct.arms import from_params
from curvote.protocols.majority.response import response
from curvote.protocols.message import Known, Message, message_of
from curvote.protocols.questions import answers, one_against_rest
from curvote.protocols.sgd.messages import gradients
from curvote.representation.direction import Whitening
from curvote.representation.simplex import codes
from curvote.task import Task
from curvote.validate import FloatArray

if TYPE_CHECKING:
    from curvote.mechanisms.base import LabelMechanism


def of(
    task: Task,
    message: Message,
    known: Known,
    sent: Columns,
    rng: np.random.Generator,
) -> FloatArray | None:
    """Return residuals (n, k) of messages; None where a message has another form."""
    form = _FORMS.get(" ".join(sorted(message.payload.model_fields)))
    return None if form is None else form(task, known, sent, rng)


def answering(task: Task, known: Known, sent: Columns) -> Known:
    """Return what clients know whose label is the answer to the question they sent.

    It is 1 for yes; where no question is sent the label answers for itself.
    """
    if "question" not in sent:
        return known
    code = one_against_rest(len(task.classes))
    told = answers(code, sent["question"], known.labels)
    return replace(known, labels=(told > 0).astype(np.int64))


def _report(
    task: Task, known: Known, sent: Columns, rng: np.random.Generator
) -> FloatArray | None:
    """Of the numbers and the label; of a question, too, that must follow no record."""
    reporter, truth = Reporter.of(task), answering(task, known, sent).signs
    features, z, out = reporter.features, known.z, sent["z"]
    if features.low == 0:
        z = (z + 1) / 2
    if features.unit_scale:
        out = (out + 1) / 2
    numbers = residuals.of(features, z, out, rng)
    bit = _kept(reporter.label, truth, sent["label"], rng)
    if numbers is None or bit is None:
        return None
    return np.hstack([numbers, bit, *_question(task, sent, rng)])


def _question(
    task: Task, sent: Columns, rng: np.random.Generator
) -> Iterator[FloatArray]:
    if "question" in sent:
        count, at = len(one_against_rest(len(task.classes))), sent["question"]
        yield residuals.between(at / count, (at + 1) / count, rng)[:, None]


def _label(
    task: Task, known: Known, sent: Columns, rng: np.random.Generator
) -> FloatArray | None:
    told = sent["label"]
    noised = response(len(task.classes))
    mechanism, truth = noised.made(epsilon=task.epsilon), noised.said(known.labels)
    if isinstance(mechanism, BinaryRR):
        return _kept(mechanism, truth, told, rng)
    return residuals.of(mechanism, truth.astype(np.float64), told, rng)


def _vote(
    task: Task, known: Known, sent: Columns, rng: np.random.Generator
) -> FloatArray | None:
    told = np.where(sent["positive"], 1.0, -1.0)
    return _kept(BinaryRR(epsilon=task.epsilon), _right(task, known), told, rng)


def _answer(
    task: Task, known: Known, sent: Columns, rng: np.random.Generator
) -> FloatArray | None:
    """Of the answer, and of the question, which must not follow the record."""
    count, question = len(task.params["threshold"]), sent["question"]
    truth = cells.truth(task, known, question).astype(np.float64)
    word = residuals.of(cells.mechanism(task), truth, sent["answer"], rng)
    drawn = residuals.between(question / count, (question + 1) / count, rng)
    return None if word is None else np.column_stack([word, drawn])


def _direction(
    task: Task, known: Known, sent: Columns, rng: np.random.Generator
) -> FloatArray | None:
    k = len(task.classes)
    given, z = from_params(task.encoding.d, task.params, k), known.z
    if "matrix" in task.params:
        whitened = (task.params["matrix"], task.params["centre"])
        given, z = given.whitened, Whitening(*map(np.asarray, whitened)).apply(z)
    mechanism = PrivUnit(epsilon=task.epsilon, d=given.size)
    own = given.vectors(z, codes(known.labels, k))
    return residuals.of(mechanism, own, sent["direction"], rng)


def _named(
    task: Task, known: Known, sent: Columns, rng: np.random.Generator
) -> FloatArray | None:
    given, k = from_params(task.encoding.d, task.params), len(task.classes)
    mechanism = OneOf(epsilon=task.epsilon, d=k * given.size, n_classes=k)
    u = given.vectors(known.z, np.ones(len(known.z)))
    turns = (sent["named"] - known.labels.astype(np.int64)) % k
    return residuals.in_cap(mechanism, u, sent["direction"] * mechanism.m, turns, rng)


def _gradient(
    task: Task, known: Known, sent: Columns, rng: np.random.Generator
) -> FloatArray | None:
    given, n_classes = gradients(task), len(task.classes)
    own = given.vectors(known.z, codes(known.labels, n_classes))
    mechanism = PrivUnit(epsilon=task.epsilon, d=given.size)
    return residuals.of(mechanism, own, sent["gradient"], rng)


def _code(
    task: Any, known: Known, sent: Columns, rng: np.random.Generator
) -> FloatArray | None:
    """Of codes, by a mechanism that is built from the task's words alone."""
    given = {"n_classes": len(task.classes), **task.params}
    mechanism = cast(
        "LabelMechanism", make(task.encoder, epsilon=task.epsilon, **given)
    )
    noised = np.asarray(sent["code"]).astype(mechanism.dtype)
    return residuals.of(mechanism, known.labels, noised, rng)


def _sums(
    task: Any, known: Known, sent: Columns, rng: np.random.Generator
) -> FloatArray | None:
    """Of noise on the sums of one table, with the sigma of the claim."""
    from curvote.audit.servers.subject import of_noise

    message: Any = message_of(task)
    sigma = message.noise(task, len(known.z)).sigma
    noise = sent["values"] - message.sums(task, known)
    return of_noise(noise, np.array([[sigma]]), rng)


def _kept(
    mechanism: BinaryRR,
    truth: NDArray[Any],
    told: NDArray[Any],
    rng: np.random.Generator,
) -> FloatArray | None:
    """Return the residuals of whether the truth was kept, whichever it was.

    So bits without noise lie on one side, and few of them, of both kinds, are seen.
    """
    one = np.ones(len(truth))
    return residuals.of(mechanism, one, told.astype(np.float64) * truth, rng)


def _right(task: Task, known: Known) -> FloatArray:
    """Return +1 where the candidate is right: then "right" is the likelier answer.

    Than it is for a client of some other class.
    """
    yes = np.ones(len(known.z), dtype=bool)
    votes = {"learner": np.asarray(known.judge), "positive": yes}
    others = [
        replace(known, labels=np.full(len(yes), k)) for k in range(len(task.classes))
    ]
    ratio = partial(message_of(task).log_ratio, task, known)
    loss = np.max([ratio(other, votes) for other in others], axis=0)
    return np.where(loss > 0, 1.0, -1.0)


# By the names of a payload's fields.
_FORMS: Mapping[str, Callable[..., FloatArray | None]] = {
    "label z": _report,
    "label question z": _report,
    "direction": _direction,
    "direction named": _named,
    "gradient": _gradient,
    "learner positive": _vote,
    "answer question": _answer,
    "label": _label,
    "code record": _code,
    "n server values": _sums,
}
