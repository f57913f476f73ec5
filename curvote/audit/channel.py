"""Checks of mechanisms: channels, label pairs, samplers, primitives, odd inputs."""

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


def check_channel(mechanism: Mechanism) -> Finding:
    """Check that the channel's largest ratio is the declared one.

    Labels: every pair and output, as fractions. Finite scalar mechanisms: inputs across
    the domain and every output. Nothing to enumerate: ok.
    """
    why = None
    if isinstance(mechanism, LabelMechanism):
        why = _check_label_channel(mechanism)
    elif isinstance(mechanism, FiniteMechanism):
        why = _check_finite_channel(mechanism)
    return Finding("channel", why)


def _check_label_channel(mechanism: LabelMechanism) -> str | None:
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


def accepted_inputs(mechanism: ScalarMechanism) -> FloatArray:
    """Return accepted inputs across the domain, its ends included."""
    grid = np.linspace(mechanism.low, mechanism.high, PROBES)
    return np.array([x for x in grid if accepts(mechanism, x)])


def accepts(mechanism: Mechanism, x: FloatArray) -> bool:
    """Return whether the mechanism accepts the input ``x`` of one client."""
    try:
        mechanism.clip(np.asarray(x)[None])
    except UserError:
        return False
    return True


def _check_finite_channel(mechanism: FiniteMechanism) -> str | None:
    table = mechanism.probabilities(accepted_inputs(mechanism))
    if not np.allclose(table.sum(axis=1), 1, rtol=0, atol=1e-12):
        return "a row of the channel does not sum to 1"
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    worst = max(float((a - b).max()) for a, b in permutations(logs, 2))
    declared = mechanism.worst_log_ratio()
    if abs(worst - declared) <= SLACK * max(1.0, np.exp(min(declared, 30.0)) * 1e-6):
        return None
    return f"the channel's worst loss is {worst:.9g}, declared is {declared:.9g}"
