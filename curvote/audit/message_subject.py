"""What leaves a client, whole: a message of a protocol as a subject of the audit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from curvote.audit import examples, interior, message_residuals, others, split
from curvote.audit.answers import thresholds
from curvote.audit.label_subject import of_label
from curvote.audit.row import Finding
from curvote.audit.sent_subject import SentSubject
from curvote.audit.servers.subject import of_table
from curvote.audit.subject import OddInput
from curvote.chain.stage import Columns
from curvote.client.report import Reporter
from curvote.entropy import Entropy
from curvote.labels.task import Task as LabelTask
from curvote.protocols.cells import messages as cells
from curvote.protocols.majority.response import response
from curvote.protocols.message import Known, message_of
from curvote.task import Asked, Task
from curvote.transfer.task import Task as TableTask
from curvote.validate import FloatArray


@dataclass(frozen=True, eq=False)
class MessageSubject(SentSubject):
    """The complete record that one client sends for a task: n = 1.

    Many clients are the rows of one ``Known``. Inputs are opposite corners of
    [-1, 1]^d with opposite labels, records that differ in one coordinate, and random
    ones.
    """

    @property
    def stands_for(self) -> str:
        """The message, where it is that of the small task in ``examples``."""
        protocol, asks = self.task.protocol, self.message.name
        few = self.task.epsilon, len(self.task.classes)
        same = examples.task(protocol, asks, *few).digest() == self.task.digest()
        return examples.name_of(protocol, asks, few[1]) if same else ""

    @property
    def deciding(self) -> tuple[int, ...]:
        """The thresholds of a word with the whole budget, or of a report's parts."""
        sent = set(self.message.payload.model_fields)
        if sent >= {"z", "label"}:
            return thresholds(Reporter.of(self.task))
        if sent == {"question", "answer"}:
            return thresholds(cells.mechanism(self.task))
        whole = response(len(self.task.classes))
        return thresholds(whole.made(epsilon=self.task.epsilon))

    @property
    def rejects(self) -> bool:
        """Whether the message is a direction: see `PrivUnit`."""
        return self.task.mechanism in {"privunit", "one_of", "joint_box"}

    def own_checks(self) -> list[Finding]:
        """Check every legal split of the budget, and what others' records move."""
        return [split.check(self.task, self.message), others.check(self)]

    def inputs(self, rng: np.random.Generator) -> list[Known]:
        """Return corners first, then their neighbours and a random record."""
        d = self.task.encoding.d
        one = np.ones(d)
        flipped = np.where(np.arange(d) == 0, -one, one)
        first, *_, last = self._labels
        places = [
            (-one, first),
            (one, last),
            (flipped, last),
            (np.zeros(d), last),
            (rng.uniform(-1, 1, d), first),
        ]
        return [self._known(z, label) for z, label in places]

    @property
    def _labels(self) -> tuple[float, ...]:
        """The labels: the places of the classes."""
        return tuple(map(float, range(len(self.task.classes))))

    def _known(self, z: FloatArray, label: float) -> Known:
        judge = None if self.task.candidates is None else np.zeros(1, dtype=np.int64)
        return Known(z[None], z[None], np.array([label]), judge)

    def draw(self, x: Known, n: int, entropy: Entropy) -> Columns:
        """Return the messages of ``n`` clients that all know ``x``."""
        return self.send(_times(x, n), entropy)

    def send(self, many: Known, entropy: Entropy) -> Columns:
        """Return the messages of clients who know ``many``, a row each."""
        sent: Columns = self.message.draw(self.task, many, entropy)
        return sent

    def many(self, n: int, rng: np.random.Generator) -> Known:
        """Return records from everywhere in [-1, 1]^d and beyond it."""
        z = interior.values((n, self.task.encoding.d), rng)
        which = (rng.random(n) * len(self._labels)).astype(np.int64)
        labels = np.array(self._labels)[which]
        up = self.task.candidates
        judge = None if up is None else rng.integers(len(up.coef), size=n)
        return Known(z, z, labels, judge)

    def part(self, many: Known, rows: slice) -> Known:
        """Return some of these clients."""
        return many.of(rows)

    def places(self, many: Known) -> FloatArray:
        """Return z and the label."""
        return np.column_stack([many.z, many.labels])

    def residuals(
        self, many: Known, outputs: Columns, rng: np.random.Generator
    ) -> FloatArray | None:
        """Return messages with the inputs taken out."""
        return message_residuals.of(self.task, self.message, many, outputs, rng)

    def shown(self, x: Known) -> FloatArray | None:
        """Return z and the label where the message is made of them."""
        if set(self.message.payload.model_fields) != {"z", "label"}:
            return None
        return np.append(x.z[0], x.signs[0])

    def log_ratio(self, x: Known, x2: Known, outputs: Columns) -> FloatArray:
        """Return the declared loss of each whole message."""
        n = len(next(iter(outputs.values())))
        with np.errstate(divide="ignore", invalid="ignore"):
            pair = _times(x, n), _times(x2, n)
            found: FloatArray = self.message.log_ratio(self.task, *pair, outputs)
        return found

    def odd_inputs(self) -> list[OddInput]:
        """Return records with no number, no label, or out of bounds."""
        good = self._known(np.full(self.task.encoding.d, 0.25), 1.0)
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


def _times(x: Known, n: int) -> Known:
    """Return ``n`` clients who know what one knows."""
    return x.of(np.zeros(n, dtype=np.int64))


def of_message(task: Asked) -> SentSubject:
    """Return the message that ``task`` asks for as a subject."""
    message = message_of(task)
    if message.whole:
        return of_table(cast("TableTask", task))
    if message.tied:
        return of_label(cast("LabelTask", task))
    return of_record(cast("Task", task))


def of_record(task: Task) -> MessageSubject:
    """Return a message about one record as a subject."""
    message = message_of(task)
    params = {"d": task.encoding.d, "mechanism": task.mechanism, **task.params}
    name = examples.name_of(task.protocol, message.name, len(task.classes))
    return MessageSubject(task, message, name, params, task.budget)
