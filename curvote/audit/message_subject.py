"""Messages about one record as subjects."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from curvote.audit import message_checks
from curvote.base.entropy import Entropy
from curvote.base.validate import FloatArray
from curvote.chain.stage import Columns
from curvote.checks import examples, residuals
from curvote.checks.subject import Finding, OddInput, SentSubject
from curvote.checks.word_checks import thresholds
from curvote.client.report import Reporter
from curvote.messages.message import ClientData, message_of
from curvote.systems.cells import messages as cells
from curvote.systems.labels.audit import label_subject
from curvote.systems.labels.messages import Task as LabelTask
from curvote.systems.references.messages import response_for
from curvote.systems.transfer.audit.subject import table_subject
from curvote.systems.transfer.method.task import Task as TableTask
from curvote.wire.task import AnyTask, Task


@dataclass(frozen=True, eq=False)
class MessageSubject(SentSubject):
    """The complete record that one client sends for a task: n = 1.

    Many clients are the rows of one ``ClientData``. Inputs are opposite corners of
    [-1, 1]^d with opposite labels, records that differ in one coordinate, and random
    ones.
    """

    @property
    def stands_for(self) -> str:
        """The shipped name, if the task is the small example."""
        protocol, asks = self.task.protocol, self.message.name
        few = self.task.epsilon, len(self.task.classes)
        same = (
            examples.example_task(protocol, asks, *few).digest() == self.task.digest()
        )
        return examples.message_name(protocol, asks, few[1]) if same else ""

    @property
    def deciding(self) -> tuple[int, ...]:
        """The thresholds of the message's mechanism or parts."""
        fields = set(self.message.payload.model_fields)
        if fields >= {"z", "label"}:
            return thresholds(Reporter.for_task(self.task))
        if fields == {"question", "answer"}:
            return thresholds(cells.answer_mechanism(self.task))
        label_response = response_for(len(self.task.classes))
        return thresholds(label_response.make_mechanism(epsilon=self.task.epsilon))

    @property
    def rejects(self) -> bool:
        """Whether candidate directions are drawn until one fits."""
        return self.task.mechanism in {"privunit", "one_of", "joint_box"}

    def own_checks(self) -> list[Finding]:
        """Check the splits of the budget, and others' influence."""
        return [
            message_checks.check_split(self.task, self.message),
            message_checks.check_others(self),
        ]

    def inputs(self, rng: np.random.Generator) -> list[ClientData]:
        """Return corners first, then neighbours and a random record."""
        d = self.task.encoding.d
        corner = np.ones(d)
        flipped = np.where(np.arange(d) == 0, -corner, corner)
        first, *_, last = self._labels
        places = [
            (-corner, first),
            (corner, last),
            (flipped, last),
            (np.zeros(d), last),
            (rng.uniform(-1, 1, d), first),
        ]
        return [self._client_data(z, label) for z, label in places]

    @property
    def _labels(self) -> tuple[float, ...]:
        """The labels: the class indices."""
        return tuple(map(float, range(len(self.task.classes))))

    def _client_data(self, z: FloatArray, label: float) -> ClientData:
        judge = None if self.task.candidates is None else np.zeros(1, dtype=np.int64)
        return ClientData(z[None], z[None], np.array([label]), judge)

    def draw(self, x: ClientData, n: int, entropy: Entropy) -> Columns:
        """Return the messages of ``n`` clients that all know ``x``."""
        return self.send(_repeat_client(x, n), entropy)

    def send(self, many: ClientData, entropy: Entropy) -> Columns:
        """Return the messages of clients who know ``many``, a row each."""
        columns: Columns = self.message.draw(self.task, many, entropy)
        return columns

    def many(self, n: int, rng: np.random.Generator) -> ClientData:
        """Return records from everywhere in [-1, 1]^d and beyond it."""
        z = residuals.test_values((n, self.task.encoding.d), rng)
        which = (rng.random(n) * len(self._labels)).astype(np.int64)
        labels = np.array(self._labels)[which]
        up = self.task.candidates
        judge = None if up is None else rng.integers(len(up.coef), size=n)
        return ClientData(z, z, labels, judge)

    def part(self, many: ClientData, rows: slice) -> ClientData:
        """Return some of these clients."""
        return many.subset(rows)

    def places(self, many: ClientData) -> FloatArray:
        """Return z and the label."""
        return np.column_stack([many.z, many.labels])

    def residuals(
        self, many: ClientData, outputs: Columns, rng: np.random.Generator
    ) -> FloatArray | None:
        """Return messages with the inputs taken out."""
        return message_checks.residuals_of_message(
            self.task, self.message, many, outputs, rng
        )

    def shown(self, x: ClientData) -> FloatArray | None:
        """Return z and the label where the message is made of them."""
        if set(self.message.payload.model_fields) != {"z", "label"}:
            return None
        return np.append(x.z[0], x.signs[0])

    def log_ratio(self, x: ClientData, x2: ClientData, outputs: Columns) -> FloatArray:
        """Return the declared loss of each whole message."""
        n = len(next(iter(outputs.values())))
        with np.errstate(divide="ignore", invalid="ignore"):
            pair = _repeat_client(x, n), _repeat_client(x2, n)
            losses: FloatArray = self.message.log_ratio(self.task, *pair, outputs)
        return losses

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


def _repeat_client(x: ClientData, n: int) -> ClientData:
    """Return ``n`` copies of one client's data."""
    return x.subset(np.zeros(n, dtype=np.int64))


def message_subject_of(task: AnyTask) -> SentSubject:
    """Return the message of ``task`` as a subject."""
    message = message_of(task)
    if message.per_table:
        return table_subject(cast("TableTask", task))
    if message.per_record:
        return label_subject(cast("LabelTask", task))
    return record_subject_of(cast("Task", task))


def record_subject_of(task: Task) -> MessageSubject:
    """Return a message about one record as a subject."""
    message = message_of(task)
    params = {"d": task.encoding.d, "mechanism": task.mechanism, **task.params}
    name = examples.message_name(task.protocol, message.name, len(task.classes))
    return MessageSubject(task, message, name, params, task.budget)
