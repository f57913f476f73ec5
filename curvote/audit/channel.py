"""The whole channel by brute force, against the worst loss that is declared."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from curvote.audit.row import Finding
from curvote.errors import UserError
from curvote.mechanisms.base import (
    LabelMechanism,
    Mechanism,
    ScalarMechanism,
)
from curvote.mechanisms.finite import FiniteMechanism
from curvote.validate import FloatArray

PROBES = 9
SLACK = 1e-9


def check(mechanism: Mechanism) -> Finding:
    """Say whether the channel's largest ratio is the one that is declared.

    Labels: every pair and output, as fractions. Finite scalar mechanisms: inputs across
    the domain and every output. Nothing to enumerate: ok.
    """
    why = None
    if isinstance(mechanism, LabelMechanism):
        why = _labels(mechanism)
    elif isinstance(mechanism, FiniteMechanism):
        why = _finite(mechanism)
    return Finding("channel", why)


def _labels(mechanism: LabelMechanism) -> str | None:
    try:
        table = mechanism.channel()
    except UserError:  # too large to be written out
        return None
    if any(sum(row) != 1 for row in table):
        return "a row of the channel does not sum to 1"
    columns = [column for column in zip(*table, strict=True) if max(column) > 0]
    if any(min(column) == 0 for column in columns):
        return "an output is possible for one label and not for another"
    worst = max(max(column) / min(column) for column in columns)
    if worst == mechanism.worst_ratio():
        return None
    return f"the channel's worst ratio is {float(worst):.9g}, the declared one differs"


def accepted(mechanism: ScalarMechanism) -> FloatArray:
    """Return inputs across the domain, its ends included, that are not refused."""
    grid = np.linspace(mechanism.low, mechanism.high, PROBES)
    return np.array([x for x in grid if takes(mechanism, x)])


def takes(mechanism: Mechanism, x: FloatArray) -> bool:
    """Say whether the mechanism takes the input ``x`` of one client."""
    try:
        mechanism.clip(np.asarray(x)[None])
    except UserError:
        return False
    return True


def _finite(mechanism: FiniteMechanism) -> str | None:
    table = mechanism.probabilities(accepted(mechanism))
    if not np.allclose(table.sum(axis=1), 1, rtol=0, atol=1e-12):
        return "a row of the channel does not sum to 1"
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    worst = max(float((a - b).max()) for a, b in permutations(logs, 2))
    declared = mechanism.worst_log_ratio()
    if abs(worst - declared) <= SLACK * max(1.0, np.exp(min(declared, 30.0)) * 1e-6):
        return None
    return f"the channel's worst loss is {worst:.9g}, declared is {declared:.9g}"
