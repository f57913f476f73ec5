"""Whether the parts of a report stay within its budget, at every legal share."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import cast

import numpy as np

from curvote.audit import message_residuals
from curvote.audit.bounds import exceeds
from curvote.audit.interior import excess
from curvote.audit.row import Finding
from curvote.client.report import Reporter
from curvote.entropy import SeededEntropy
from curvote.errors import UserError
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.mechanisms.coordinates import PerCoordinate
from curvote.mechanisms.laplace import Laplace
from curvote.privacy import Budget
from curvote.protocols.message import Known, Message
from curvote.task import Task

SHARES: tuple[float | str, ...] = ("equal", 1e-4, 0.01, 0.1, 0.25, 1 / 3, 0.5)
SHARES += (0.6, 0.75, 0.9, 0.99, 0.999)
DIMENSIONS = (1, 2, 3, 4, 7, 16, 50)
PARTS = (1, 2, 3, 5, 7, 10, 49, 100)
CLIENTS = 30_000
ALPHA = 1e-9
# Parts are rounded to float64, and rates of noise to 2^-30 of themselves.
SLACK = Fraction(1, 1 << 20)


def check(task: Task, message: Message) -> Finding:
    """Add up what label and numbers spend, and draw at each share.

    Nothing where the message is one vector or one bit: then nothing is split.
    """
    if not set(message.payload.model_fields) >= {"z", "label"}:
        return Finding("split")
    for share in SHARES:
        why = _sums(task, share) or _drawn(task, message, share)
        if why:
            return Finding("split", f"label_share {share}: {why}")
    return Finding("split", _parts(task.epsilon))


def _sums(task: Task, share: float | str) -> str | None:
    """Add up exactly what is spent on d numbers and the label, for several d."""
    whole = Fraction(task.epsilon)
    for d in DIMENSIONS:
        try:
            given = Reporter.build(d, task.epsilon, Laplace.name, share)
        except UserError:
            continue  # too little is left for a number: refused, nothing is drawn
        label, numbers = given.label, cast("PerCoordinate", given.features)
        asked = Fraction(1, d + 1) if share == "equal" else Fraction(share)
        if abs(Fraction(label.epsilon) / (asked * whole) - 1) > SLACK:
            return f"with {d} numbers the label gets {label.epsilon:.6g}"
        each = Fraction(numbers.scalar.worst_log_ratio())
        if each * d + Fraction(label.epsilon) > whole:
            return f"with {d} numbers the parts are more than the whole"
        if exceeds(label.worst_ratio(), label.epsilon):
            return f"with {d} numbers the label loses more than its part"
    return None


def _drawn(task: Task, message: Message, share: float | str) -> str | None:
    """Compare draws at this share with the laws of the parts, built from the task."""
    rng = np.random.default_rng(1)
    z = rng.uniform(-1, 1, (CLIENTS, task.encoding.d))
    known = Known(z, z, np.where(rng.random(CLIENTS) < 0.5, 0, 1))
    stated = replace(task, label_share=share)
    sent = message.draw(stated, known, SeededEntropy(2))
    found = message_residuals.of(stated, message, known, sent, rng)
    if found is None:
        return None
    label = 1 / (task.encoding.d + 1) if share == "equal" else float(share)
    own = BinaryRR(epsilon=label * task.epsilon)
    told = message_residuals.answering(stated, known, sent)
    kept = float(np.mean(sent["label"] == told.signs))
    if abs(kept - own.keep) > 7 * np.sqrt(0.25 / CLIENTS):
        return f"the label is kept {kept:.3f} of the time, not {own.keep:.3f}"
    return excess(found, ALPHA)


def _parts(epsilon: float) -> str | None:
    """Check that no split of a budget is more than the budget, in fractions."""
    for whole in (Budget(epsilon), Budget(epsilon / 3), Budget(7.3 * epsilon)):
        total = Fraction(whole.epsilon)
        for n in PARTS:
            if Fraction(whole.each(n).epsilon) * n > total:
                return f"{n} equal parts of {whole} are more than it"
        for share in np.linspace(0.001, 0.999, 199):
            first, rest = whole.split(float(share))
            if Fraction(first.epsilon) + Fraction(rest.epsilon) > total:
                return f"two parts of {whole} are more than it"
    return None
