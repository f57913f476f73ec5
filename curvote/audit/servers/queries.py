"""Check by many queries of one release: the attacker's best combination.

The attacker knows the public features, both neighbours and the noise, and adds up the
answers with the best weights; queries are post-processing, so that must say no more
than (epsilon, delta) allows of Gaussian noise, however often a point is asked.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from curvote.audit.servers import gaussian_law
from curvote.entropy import SeededEntropy
from curvote.validate import FloatArray

if TYPE_CHECKING:
    from curvote.audit.servers.subject import TableSubject

POINTS, TIMES = 250, 4
RELEASES = 200
# The covariance of answers is worked out at fewer points where there are many features.
WIDE, FEW = 1000, 40
# Standard deviations of an estimated separation.
MOST_ERRORS = 6.0


def check_queries(subject: TableSubject, seed: int = 1) -> str | None:
    """Return a finding if 1,000 answers tell neighbours apart more than allowed."""
    points = _query_points(subject, seed)
    x, x2, _ = subject.worst.tables
    first_answers, second_answers = (
        subject.answers(table, points, RELEASES, SeededEntropy(seed + i))
        for i, table in enumerate((x, x2))
    )
    repeated = first_answers.reshape(RELEASES, TIMES, -1)
    size = max(float(np.abs(repeated).max()), 1.0)
    if np.ptp(repeated, axis=1).max() > 1e-9 * size:
        why = "the same point asked twice gets two answers; "
    else:
        why = ""
    budget = subject.budget
    allowed_separation = gaussian_law.largest_deviation(budget.epsilon, budget.delta)
    separation = max(
        _separation(first_answers, second_answers, w)
        for w in _attack_weights(subject, points)
    )
    margin = MOST_ERRORS * math.sqrt((2 + separation * separation / 2) / RELEASES)
    if separation > allowed_separation + margin:
        why += f"{POINTS * TIMES} answers tell neighbours apart by {separation:.3g}"
        return f"{why} standard deviations, {allowed_separation:.3g} are allowed"
    return why or None


def _query_points(subject: TableSubject, seed: int) -> FloatArray:
    """Return 250 points in [0, 1]^d, repeated four times."""
    points = np.random.default_rng(seed).random((POINTS, subject.task.d))
    return np.tile(points, (TIMES, 1))


def _attack_weights(subject: TableSubject, points: FloatArray) -> list[FloatArray]:
    """Return the attacker's best weights of answers, for two kinds of noise.

    Noise drawn anew for each query: those of the answers' difference. Noise that all
    queries share: the same, with the shared part taken out by its covariance.
    """
    form, task = subject.message.form(subject.task), subject.task
    x, x2, _ = subject.worst.tables
    apart = subject.message.sums(task, x) - subject.message.sums(task, x2)
    rows = form.weights(task, apart.astype(np.float64))
    gap = form.product(task, points, rows)
    some = POINTS if rows.shape[1] <= WIDE else FEW
    features = form.product(task, points[:some], np.eye(rows.shape[1]))
    inverse = np.linalg.pinv(features @ features.T, rcond=1e-9, hermitian=True)
    shared = np.zeros_like(gap)
    shared[:some] = inverse @ gap[:some]
    return [gap.ravel(), shared.ravel()]


def _separation(
    first_answers: FloatArray, second_answers: FloatArray, weights: FloatArray
) -> float:
    """Return the separation of weighted answers in standard deviations."""
    first, second = first_answers @ weights, second_answers @ weights
    spread = math.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2)
    return abs(float(first.mean() - second.mean())) / spread if spread else 0.0
