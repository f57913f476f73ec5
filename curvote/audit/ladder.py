"""Verdicts on subjects: every check on each, one row with its findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from curvote.audit import exact, interior
from curvote.audit.row import Finding
from curvote.audit.subject import Subject
from curvote.entropy import SeededEntropy
from curvote.privacy import Budget

# Round numbers, and ln 2 and ln 3: what documentation and papers name.
TYPED: tuple[float, ...] = (
    *(0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.0, 1.1, 1.2, 1.25),
    *(1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0),
    *(0.6931471805599453, 1.0986122886681098),
)
# Half the noise shows in so many at each; tables have fewer.
CLIENTS, TABLES = 2000, 60
SWEEP_ALPHA = 1e-10


@dataclass(frozen=True, eq=False)
class EpsilonSweep:
    """A subject at each epsilon of ``TYPED``; the budget is the largest."""

    name: str
    make_subject: Callable[[float], Subject]
    budget: Budget
    params: Mapping[str, Any]


def check_sweep(subject: EpsilonSweep, samples: int, seed: int) -> list[Finding]:
    """Compare draws and loss with the declared law at each epsilon."""
    findings = {"exact": Finding("exact"), "levels": Finding("levels")}
    for epsilon in TYPED:
        level_subject = subject.make_subject(epsilon)
        checks = [exact.check_declared_loss(level_subject, level_subject.loss())]
        if samples:
            checks.append(Finding("levels", _sweep_fault(level_subject, seed)))
        for finding in checks:
            if finding.why:
                findings[finding.check] = Finding(
                    finding.check, f"at {epsilon:g}: {finding.why}"
                )
    return [*findings.values()]


def _sweep_fault(subject: Subject, seed: int) -> str | None:
    rng, entropy = np.random.default_rng(seed), SeededEntropy(seed)
    many = subject.many(CLIENTS if subject.batched else TABLES, rng)
    residuals = subject.residuals(many, subject.send(many, entropy), rng)
    return (
        None if residuals is None else interior.uniformity_gap(residuals, SWEEP_ALPHA)
    )
