"""One subject at every epsilon that people type: a fault may stand at one of them."""

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
ALPHA = 1e-10


@dataclass(frozen=True, eq=False)
class Ladder:
    """``made`` of an epsilon, at each of ``TYPED``; the budget is the largest."""

    name: str
    made: Callable[[float], Subject]
    budget: Budget
    params: Mapping[str, Any]


def every(subject: Ladder, samples: int, seed: int) -> list[Finding]:
    """Compare draws with the declared law at each epsilon, and its loss with that."""
    found = {"exact": Finding("exact"), "levels": Finding("levels")}
    for epsilon in TYPED:
        one = subject.made(epsilon)
        checks = [exact.check(one, one.loss())]
        if samples:
            checks.append(Finding("levels", _gap(one, seed)))
        for each in checks:
            if each.why:
                found[each.check] = Finding(each.check, f"at {epsilon:g}: {each.why}")
    return [*found.values()]


def _gap(one: Subject, seed: int) -> str | None:
    rng, entropy = np.random.default_rng(seed), SeededEntropy(seed)
    many = one.many(CLIENTS if one.batched else TABLES, rng)
    residuals = one.residuals(many, one.send(many, entropy), rng)
    return None if residuals is None else interior.excess(residuals, ALPHA)
