"""Checks of messages: residuals, splits of the budget, others' records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray
from curvote.chain.stage import Columns
from curvote.checks import residuals
from curvote.checks.loss_checks import exceeds_exp
from curvote.checks.residuals import uniformity_gap
from curvote.checks.subject import Finding, SentSubject
from curvote.client.report import Reporter
from curvote.curves.direction import Whitening, class_codes
from curvote.mechanisms.coordinates import PerCoordinate
from curvote.mechanisms.factory import make
from curvote.mechanisms.laplace import Laplace
from curvote.mechanisms.privunit import OneOf, PrivUnit
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.messages.arms import directions_from_params
from curvote.messages.message import ClientData, Message, message_of
from curvote.systems.cells import messages as cells
from curvote.systems.common.questions import answer_questions, one_against_rest_code
from curvote.systems.direct.messages import task_gradients
from curvote.systems.references.messages import response_for
from curvote.wire.task import Task

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
    from curvote.checks.residuals import noise_uniforms

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


SHARES: tuple[float | str, ...] = ("equal", 1e-4, 0.01, 0.1, 0.25, 1 / 3, 0.5)
SHARES += (0.6, 0.75, 0.9, 0.99, 0.999)
DIMENSIONS = (1, 2, 3, 4, 7, 16, 50)
PARTS = (1, 2, 3, 5, 7, 10, 49, 100)
SPLIT_CLIENTS = 30_000
ALPHA = 1e-9
# Parts are rounded to float64, and rates of noise to 2^-30 of themselves.
SLACK = Fraction(1, 1 << 20)


def check_split(task: Task, message: Message) -> Finding:
    """Add up the losses of label and numbers, and draw at each share.

    Nothing where the message is one vector or one bit: then nothing is split.
    """
    if not set(message.payload.model_fields) >= {"z", "label"}:
        return Finding("split")
    for share in SHARES:
        why = _check_part_sums(task, share) or _check_drawn_parts(task, message, share)
        if why:
            return Finding("split", f"label_share {share}: {why}")
    return Finding("split", _check_budget_parts(task.epsilon))


def _check_part_sums(task: Task, share: float | str) -> str | None:
    """Add up exactly the losses of d numbers and the label, for several d."""
    total = Fraction(task.epsilon)
    for d in DIMENSIONS:
        try:
            reporter = Reporter.build(d, task.epsilon, Laplace.name, share)
        except UserError:
            continue  # too little is left for a number: refused, nothing is drawn
        label, numbers = reporter.label, cast("PerCoordinate", reporter.features)
        wanted_share = Fraction(1, d + 1) if share == "equal" else Fraction(share)
        if abs(Fraction(label.epsilon) / (wanted_share * total) - 1) > SLACK:
            return f"with {d} numbers the label gets {label.epsilon:.6g}"
        number_loss = Fraction(numbers.scalar.worst_log_ratio())
        if number_loss * d + Fraction(label.epsilon) > total:
            return f"with {d} numbers the parts are more than the whole"
        if exceeds_exp(label.worst_ratio(), label.epsilon):
            return f"with {d} numbers the label loses more than its part"
    return None


def _check_drawn_parts(task: Task, message: Message, share: float | str) -> str | None:
    """Compare draws at this share with the laws of the parts, built from the task."""
    rng = np.random.default_rng(1)
    z = rng.uniform(-1, 1, (SPLIT_CLIENTS, task.encoding.d))
    data = ClientData(z, z, np.where(rng.random(SPLIT_CLIENTS) < 0.5, 0, 1))
    share_task = replace(task, label_share=share)
    columns = message.draw(share_task, data, SeededEntropy(2))
    residuals = residuals_of_message(share_task, message, data, columns, rng)
    if residuals is None:
        return None
    label = 1 / (task.encoding.d + 1) if share == "equal" else float(share)
    label_mechanism = BinaryRR(epsilon=label * task.epsilon)
    answering = answering_data(share_task, data, columns)
    kept_rate = float(np.mean(columns["label"] == answering.signs))
    if abs(kept_rate - label_mechanism.keep) > 7 * np.sqrt(0.25 / SPLIT_CLIENTS):
        return (
            f"the label is kept {kept_rate:.3f} of the time, not"
            f" {label_mechanism.keep:.3f}"
        )
    return uniformity_gap(residuals, ALPHA)


def _check_budget_parts(epsilon: float) -> str | None:
    """Check that no split of a budget exceeds it, in fractions."""
    for budget in (Budget(epsilon), Budget(epsilon / 3), Budget(7.3 * epsilon)):
        total = Fraction(budget.epsilon)
        for n in PARTS:
            if Fraction(budget.each(n).epsilon) * n > total:
                return f"{n} equal parts of {budget} are more than it"
        for share in np.linspace(0.001, 0.999, 199):
            first, rest = budget.split(float(share))
            if Fraction(first.epsilon) + Fraction(rest.epsilon) > total:
                return f"two parts of {budget} are more than it"
    return None


OTHERS_CLIENTS = 400
RUNS = 5


def check_others(subject: SentSubject) -> Finding:
    """Draw for clients of whom every second record is replaced.

    Nothing is compared where candidates are rejected: there one client's record says
    which words the next ones get.
    """
    if subject.rejects:
        return Finding("others")
    moved = sum(_count_moved(subject, seed) for seed in range(RUNS))
    why = (
        f"{moved} of {RUNS * OTHERS_CLIENTS // 2} messages moved with the records of"
        " others"
    )
    return Finding("others", why if moved else None)


def _count_moved(subject: SentSubject, seed: int) -> int:
    """Return how many unchanged clients send something else."""
    data: ClientData = subject.many(OTHERS_CLIENTS, np.random.default_rng(seed))
    stay = np.arange(OTHERS_CLIENTS) % 2 == 0
    before, after = (
        subject.view(subject.send(many, SeededEntropy(seed)))[stay]
        for many in (data, _move_to_corner(data, ~stay))
    )
    return int((before != after).any(axis=1).sum())


def _move_to_corner(data: ClientData, rows: NDArray[np.bool_]) -> ClientData:
    """Return the clients with the records of ``rows`` at one corner."""
    there = rows[:, None]
    return replace(
        data,
        coefficients=np.where(there, 1.0, data.coefficients),
        z=np.where(there, 1.0, data.z),
        labels=np.where(rows, 0, data.labels),
    )
