"""Check that the parts of a report stay within its budget at every legal share."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import cast

import numpy as np

from curvote.audit import message_residuals
from curvote.audit.bounds import exceeds_exp
from curvote.audit.interior import uniformity_gap
from curvote.audit.row import Finding
from curvote.client.report import Reporter
from curvote.entropy import SeededEntropy
from curvote.errors import UserError
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.mechanisms.coordinates import PerCoordinate
from curvote.mechanisms.laplace import Laplace
from curvote.privacy import Budget
from curvote.protocols.message import ClientData, Message
from curvote.task import Task

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
    residuals = message_residuals.residuals_of_message(
        share_task, message, data, columns, rng
    )
    if residuals is None:
        return None
    label = 1 / (task.encoding.d + 1) if share == "equal" else float(share)
    label_mechanism = BinaryRR(epsilon=label * task.epsilon)
    answering = message_residuals.answering_data(share_task, data, columns)
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
