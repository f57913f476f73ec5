"""Messages about one record as subjects."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray
from curvote.chain.stage import Columns
from curvote.checks import examples, loss_checks, residuals
from curvote.checks.residuals import output_residuals
from curvote.checks.subject import Findings, OddInput, Rng, SentSubject
from curvote.client.report import Reporter
from curvote.curves.direction import Whitening, class_codes
from curvote.mechanisms.factory import make
from curvote.mechanisms.laplace import Laplace
from curvote.mechanisms.privunit import OneOf, PrivUnit
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.messages.arms import directions_from_params
from curvote.messages.message import ClientData, Message, message_of
from curvote.systems.cells import messages as cells
from curvote.systems.common.questions import answer_questions, one_against_rest_code
from curvote.systems.direct.messages import task_gradients
from curvote.systems.labels.audit import label_subject
from curvote.systems.references.messages import response_for
from curvote.systems.transfer.audit.subject import table_subject
from curvote.wire.task import Task

# Residuals of the parts of messages, (n, k) each; None: a law without such a form.
Parts = Iterator[FloatArray | None]


def residuals_of_message(
    task: Task, message: Message, data: ClientData, columns: Columns, rng: Rng
) -> FloatArray | None:
    """Return residuals (n, k) of messages, None for another form."""
    form = _FORMS.get(" ".join(sorted(message.payload.model_fields)))
    parts = [] if form is None else list(form(task, data, columns, rng))
    present = [part for part in parts if part is not None]
    return np.hstack(present) if parts and len(present) == len(parts) else None


def answering_data(task: Task, data: ClientData, columns: Columns) -> ClientData:
    """Return client data whose labels are the answers to the questions.

    It is 1 for yes; where no question is sent the label answers for itself.
    """
    if "question" not in columns:
        return data
    code = one_against_rest_code(len(task.classes))
    replies = answer_questions(code, columns["question"], data.labels)
    return replace(data, labels=(replies > 0).astype(np.int64))


def _report_parts(task: Task, data: ClientData, columns: Columns, rng: Rng) -> Parts:
    reporter, truth = Reporter.for_task(task), answering_data(task, data, columns).signs
    features, z, out = reporter.features, data.z, columns["z"]
    if features.low == 0:
        z = (z + 1) / 2
    if features.unit_scale:
        out = (out + 1) / 2
    yield output_residuals(features, z, out, rng)
    yield _truth_residuals(reporter.label, truth, columns["label"], rng)
    if "question" in columns:
        count = len(one_against_rest_code(len(task.classes)))
        yield _question_residuals(columns["question"], count, rng)


def _label_parts(task: Task, data: ClientData, columns: Columns, rng: Rng) -> Parts:
    response = response_for(len(task.classes))
    mechanism = response.make_mechanism(epsilon=task.epsilon)
    truth, labels = response.encode(data.labels), columns["label"]
    if isinstance(mechanism, BinaryRR):
        yield _truth_residuals(mechanism, truth, labels, rng)
    else:
        yield output_residuals(mechanism, truth.astype(np.float64), labels, rng)


def _vote_parts(task: Task, data: ClientData, columns: Columns, rng: Rng) -> Parts:
    answer_signs = np.where(columns["positive"], 1.0, -1.0)
    # The candidate is right for the client, than it is for one of some other class.
    yes = np.ones(len(data.z), dtype=bool)
    votes = {"learner": np.asarray(data.candidate), "positive": yes}
    labels = (np.full(len(yes), k) for k in range(len(task.classes)))
    other_data = [replace(data, labels=other) for other in labels]
    ratio = partial(message_of(task).log_ratio, task, data)
    loss = np.max([ratio(other, votes) for other in other_data], axis=0)
    right, mechanism = np.where(loss > 0, 1.0, -1.0), BinaryRR(epsilon=task.epsilon)
    yield _truth_residuals(mechanism, right, answer_signs, rng)


def _answer_parts(task: Task, data: ClientData, columns: Columns, rng: Rng) -> Parts:
    question = columns["question"]
    truth = cells.true_answers(task, data, question).astype(np.float64)
    mechanism = cells.answer_mechanism(task)
    yield output_residuals(mechanism, truth, columns["answer"], rng)
    yield _question_residuals(question, len(task.params["threshold"]), rng)


def _direction_parts(task: Task, data: ClientData, columns: Columns, rng: Rng) -> Parts:
    k = len(task.classes)
    encoder, z = directions_from_params(task.encoding.d, task.params, k), data.z
    if "matrix" in task.params:
        whitened = (task.params["matrix"], task.params["centre"])
        encoder, z = encoder.whitened, Whitening(*map(np.asarray, whitened)).apply(z)
    mechanism = PrivUnit(epsilon=task.epsilon, d=encoder.size)
    vectors = encoder.vectors(z, class_codes(data.labels, k))
    yield output_residuals(mechanism, vectors, columns["direction"], rng)


def _named_parts(task: Task, data: ClientData, columns: Columns, rng: Rng) -> Parts:
    encoder, k = directions_from_params(task.encoding.d, task.params), len(task.classes)
    mechanism = OneOf(epsilon=task.epsilon, d=k * encoder.size, n_classes=k)
    u = encoder.vectors(data.z, np.ones(len(data.z)))
    turns = (columns["named"] - data.labels.astype(np.int64)) % k
    scaled = columns["direction"] * mechanism.m
    yield residuals.cap_residuals(mechanism, u, scaled, turns, rng)


def _gradient_parts(task: Task, data: ClientData, columns: Columns, rng: Rng) -> Parts:
    encoder, n_classes = task_gradients(task), len(task.classes)
    vectors = encoder.vectors(data.z, class_codes(data.labels, n_classes))
    mechanism = PrivUnit(epsilon=task.epsilon, d=encoder.size)
    yield output_residuals(mechanism, vectors, columns["gradient"], rng)


def _code_parts(task: Any, data: ClientData, columns: Columns, rng: Rng) -> Parts:
    """Yield residuals of codes, by a mechanism built from the task."""
    options = {"n_classes": len(task.classes), **task.params}
    mechanism: Any = make(task.encoder, epsilon=task.epsilon, **options)
    noised = np.asarray(columns["code"]).astype(mechanism.dtype)
    yield output_residuals(mechanism, data.labels, noised, rng)


def _sum_parts(task: Any, data: ClientData, columns: Columns, rng: Rng) -> Parts:
    message: Any = message_of(task)
    sigma = message.noise(task, len(data.z)).sigma
    noise = columns["values"] - message.sums(task, data)
    yield residuals.noise_uniforms(noise, np.array([[sigma]]), rng)


def _question_residuals(question: NDArray[Any], count: int, rng: Rng) -> FloatArray:
    """Return residuals (n, 1) of one of ``count`` questions, as likely each."""
    ends = question / count, (question + 1) / count
    return residuals.uniform_between(*ends, rng)[:, None]


def _truth_residuals(
    mechanism: BinaryRR, truth: NDArray[Any], reported: NDArray[Any], rng: Rng
) -> FloatArray | None:
    """Return residuals of whether the truth was reported.

    So bits without noise lie on one side, and few of them, of both kinds, are seen.
    """
    ones, truthful = np.ones(len(truth)), reported.astype(np.float64) * truth
    return output_residuals(mechanism, ones, truthful, rng)


# By the names of a payload's fields.
_FORMS: Mapping[str, Callable[..., Parts]] = {
    "label z": _report_parts,
    "label question z": _report_parts,
    "direction": _direction_parts,
    "direction named": _named_parts,
    "gradient": _gradient_parts,
    "learner positive": _vote_parts,
    "answer question": _answer_parts,
    "label": _label_parts,
    "code record": _code_parts,
    "n server values": _sum_parts,
}


SHARES: tuple[float | str, ...] = ("equal", 1e-4, 0.01, 0.1, 0.25, 1 / 3, 0.5)
SHARES += (0.6, 0.75, 0.9, 0.99, 0.999)
DIMENSIONS = (1, 2, 3, 4, 7, 16, 50)
PARTS = (1, 2, 3, 5, 7, 10, 49, 100)
SPLIT_CLIENTS = 30_000
ALPHA = 1e-9
# Parts are rounded to float64, and rates of noise to 2^-30 of themselves.
SLACK = Fraction(1, 1 << 20)


def split_faults(task: Task, message: Message) -> Iterator[str]:
    """Add up the losses of label and numbers, and draw at each share.

    Nothing where the message is one vector or one bit: then nothing is split.
    """
    if not set(message.payload.model_fields) >= {"z", "label"}:
        return
    for share in SHARES:
        for fault in _share_faults(task, message, share):
            yield f"label_share {share}: {fault}"
    # No split of a budget exceeds it, in fractions.
    epsilon = task.epsilon
    for budget in (Budget(epsilon), Budget(epsilon / 3), Budget(7.3 * epsilon)):
        total = Fraction(budget.epsilon)
        for n in PARTS:
            if Fraction(budget.each(n).epsilon) * n > total:
                yield f"{n} equal parts of {budget} are more than it"
        for share in np.linspace(0.001, 0.999, 199):
            first, rest = budget.split(float(share))
            if Fraction(first.epsilon) + Fraction(rest.epsilon) > total:
                yield f"two parts of {budget} are more than it"


def _share_faults(task: Task, message: Message, share: float | str) -> Iterator[str]:
    """Yield the faults of the losses of d numbers and the label, and of draws."""
    total = Fraction(task.epsilon)
    for d in DIMENSIONS:
        try:
            reporter = Reporter.build(d, task.epsilon, Laplace.name, share)
        except UserError:
            continue  # too little is left for a number: refused, nothing is drawn
        label = reporter.label
        numbers: Any = reporter.features
        wanted_share = Fraction(1, d + 1) if share == "equal" else Fraction(share)
        if abs(Fraction(label.epsilon) / (wanted_share * total) - 1) > SLACK:
            yield f"with {d} numbers the label gets {label.epsilon:.6g}"
        number_loss = Fraction(numbers.scalar.worst_log_ratio())
        if number_loss * d + Fraction(label.epsilon) > total:
            yield f"with {d} numbers the parts are more than the whole"
        if loss_checks.exceeds_exp(label.worst_ratio(), label.epsilon):
            yield f"with {d} numbers the label loses more than its part"
    # Draws at this share, against the laws of the parts as the task states them.
    rng = np.random.default_rng(1)
    z = rng.uniform(-1, 1, (SPLIT_CLIENTS, task.encoding.d))
    data = ClientData(z, z, np.where(rng.random(SPLIT_CLIENTS) < 0.5, 0, 1))
    share_task = replace(task, label_share=share)
    columns = message.draw(share_task, data, SeededEntropy(2))
    share_residuals = residuals_of_message(share_task, message, data, columns, rng)
    if share_residuals is None:
        return
    part = 1 / (task.encoding.d + 1) if share == "equal" else float(share)
    keep = BinaryRR(epsilon=part * task.epsilon).keep
    answering = answering_data(share_task, data, columns)
    kept_rate = float(np.mean(columns["label"] == answering.signs))
    if abs(kept_rate - keep) > 7 * np.sqrt(0.25 / SPLIT_CLIENTS):
        yield f"the label is kept {kept_rate:.3f} of the time, not {keep:.3f}"
    if why := residuals.uniformity_gap(share_residuals, ALPHA):
        yield why


OTHERS_CLIENTS = 400
RUNS = 5


def check_others(subject: SentSubject) -> str | None:
    """Draw for clients of whom every second record is replaced.

    Nothing is compared where candidates are rejected: there one client's record says
    which words the next ones get.
    """
    if subject.rejects:
        return None
    moved, stay = 0, np.arange(OTHERS_CLIENTS) % 2 == 0
    for seed in range(RUNS):
        data: ClientData = subject.many(OTHERS_CLIENTS, np.random.default_rng(seed))
        coefficients = np.where(stay[:, None], data.coefficients, 1.0)
        z, labels = np.where(stay[:, None], data.z, 1.0), np.where(stay, data.labels, 0)
        at_corner = replace(data, coefficients=coefficients, z=z, labels=labels)
        before, after = (
            subject.view(subject.send(many, SeededEntropy(seed)))[stay]
            for many in (data, at_corner)
        )
        moved += int((before != after).any(axis=1).sum())
    of = RUNS * OTHERS_CLIENTS // 2
    why = f"{moved} of {of} messages moved with the records of others"
    return why if moved else None


@dataclass(frozen=True, eq=False)
class MessageSubject(SentSubject):
    """The message about a client's own record.

    Inputs are opposite corners of [-1, 1]^d with opposite labels, records that differ
    in one coordinate, and random ones.
    """

    @property
    def mechanism(self) -> Any:
        """The message's mechanism, or the reporter with its parts."""
        fields = set(self.message.payload.model_fields)
        if fields >= {"z", "label"}:
            return Reporter.for_task(self.task)
        if fields == {"question", "answer"}:
            return cells.answer_mechanism(self.task)
        response = response_for(len(self.task.classes))
        return response.make_mechanism(epsilon=self.task.epsilon)

    @property
    def row_params(self) -> Mapping[str, Any]:
        """The parameters: no pair of labels alone is the worst."""
        return self.params

    @property
    def rejects(self) -> bool:
        """Whether candidate directions are drawn until one fits."""
        return self.task.mechanism in {"privunit", "one_of", "joint_box"}

    def own_checks(self) -> Findings:
        """Check the splits of the budget, and others' influence."""
        split = next(split_faults(self.task, self.message), None)
        return {"split": split, "others": check_others(self)}

    def inputs(self, rng: Rng) -> list[ClientData]:
        """Return corners first, then neighbours and a random record."""
        d = self.task.encoding.d
        corner = np.ones(d)
        flipped = np.where(np.arange(d) == 0, -corner, corner)
        first, *_, last = self._labels
        places = [(-corner, first), (corner, last), (flipped, last)]
        places += [(np.zeros(d), last), (rng.uniform(-1, 1, d), first)]
        return [self._client_data(z, label) for z, label in places]

    @property
    def _labels(self) -> tuple[float, ...]:
        return tuple(map(float, range(len(self.task.classes))))

    def _client_data(self, z: FloatArray, label: float) -> ClientData:
        judge = None if self.task.candidates is None else np.zeros(1, dtype=np.int64)
        return ClientData(z[None], z[None], np.array([label]), judge)

    def many(self, n: int, rng: Rng) -> ClientData:
        """Return records from everywhere in [-1, 1]^d and beyond it."""
        z = residuals.test_values((n, self.task.encoding.d), rng)
        which = (rng.random(n) * len(self._labels)).astype(np.int64)
        labels = np.array(self._labels)[which]
        up = self.task.candidates
        judge = None if up is None else rng.integers(len(up.coef), size=n)
        return ClientData(z, z, labels, judge)

    def places(self, many: ClientData) -> FloatArray:
        """Return z and the label."""
        return np.column_stack([many.z, many.labels])

    def residuals(
        self, many: ClientData, outputs: Columns, rng: Rng
    ) -> FloatArray | None:
        """Return messages with the inputs taken out."""
        return residuals_of_message(self.task, self.message, many, outputs, rng)

    def input_row(self, x: ClientData) -> FloatArray | None:
        """Return z and the label where the message is made of them."""
        if set(self.message.payload.model_fields) != {"z", "label"}:
            return None
        return np.append(x.z[0], x.signs[0])

    def odd_inputs(self) -> list[OddInput]:
        """Return records with no number, no label, or out of bounds."""
        good = self._client_data(np.full(self.task.encoding.d, 0.25), 1.0)
        between = (self._labels[0] + self._labels[1]) / 2
        odd = [
            OddInput(f"a label of {bad:g}", replace(good, labels=np.array([bad])))
            for bad in (np.nan, between, self._labels[-1] + 1, np.inf)
        ]
        if self.task.candidates is not None:
            return odd
        for bad in (np.nan, np.inf, -np.inf):
            z = np.where(np.arange(good.z.size) == 0, bad, good.z)
            odd.append(OddInput(f"a coordinate of {bad:g}", replace(good, z=z)))
        odd.append(OddInput("two labels", replace(good, labels=np.ones(2))))
        if self.message.bounded:
            far, edge = (replace(good, z=np.full_like(good.z, v)) for v in (7.0, 1.0))
            odd.append(OddInput("z = 7", far, edge))
        return odd


def message_subject_of(task: Any) -> SentSubject:
    """Return the message of ``task``, of whatever kind, as a subject."""
    message = message_of(task)
    if message.per_table:
        return table_subject(task)
    if message.per_record or message.about_model:
        return label_subject(task)
    params = {"d": task.encoding.d, "mechanism": task.mechanism, **task.params}
    name = examples.message_name(task.protocol, message.name, len(task.classes))
    return MessageSubject(task, message, name, params, task.budget)
