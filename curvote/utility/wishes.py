"""Goal of a recommendation, and the sentences that explain it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from curvote.errors import UserError
from curvote.utility.deployments.deployment import Deployment
from curvote.utility.halves import Half
from curvote.utility.measured import Measurement
from curvote.validate import FloatArray

Metric = Literal["agreement", "accuracy"]
Pair = tuple[Deployment, Measurement]
Scan = Sequence[Pair]


@dataclass(frozen=True)
class Goal:
    """Goal: a metric's mean, or ``target`` for a ``share`` of records."""

    metric: Metric = "agreement"
    target: float | None = None
    share: float | None = None

    def value(self, measured: Measurement, which: Half) -> float:
        """Return the compared value: the mean, or the share at the target.

        Drawn records count as there where their interval lies above the target.
        """
        if self.share is None or self.target is None:
            return float(self._metric_values(measured)[which].mean())
        return float(np.mean(self._certain_values(measured)[which] >= self.target))

    def _metric_values(self, measured: Measurement) -> FloatArray:
        """Return the metric of each record."""
        if self.metric == "agreement":
            return measured.agreement
        if measured.right is None:
            raise UserError("Accuracy needs labels: give them, or ask for agreement.")
        return measured.right

    def _certain_values(self, measured: Measurement) -> FloatArray:
        """Return the lower ends of agreement, or the metric itself."""
        return (
            measured.lower
            if self.metric == "agreement"
            else self._metric_values(measured)
        )

    @property
    def needed(self) -> float:
        """Value that must be reached."""
        goal = self.target if self.share is None else self.share
        return 0.0 if goal is None else goal


def best_pair(scan: Scan, goal: Goal, which: Half) -> Pair:
    """Return the pair of the highest value, of equal ones the least epsilon."""
    ordered = sorted(scan, key=lambda pair: pair[0].epsilon)
    return max(ordered, key=lambda pair: goal.value(pair[1], which))


@dataclass(frozen=True)
class Explanation:
    """Explanation of a recommendation, from figures of ``displayed`` records.

    The half that did not choose, or all of them for what costs nothing.
    """

    names: tuple[str, ...]
    scan: Scan
    goal: Goal
    displayed: Half

    def why(self, pair: Pair) -> str:
        """Return the sentence on a chosen pair."""
        n, against = int(self.displayed.sum()), self._best_alternative(pair)
        begin = "Send nothing" if pair[0].free else f"Send {self._describe(pair[0])}"
        undecided = f"the {n} records that did not choose it"
        basis = f"on all {n} records" if pair[0].free else f"on {undecided}"
        return f"{begin}: {self._format_figure(pair)} {basis}; {against}."

    def explain_failure(self) -> str:
        """Return the sentence where nothing reaches the target."""
        most = max(deployment.epsilon for deployment, _ in self.scan)
        near = best_pair(self.scan, self.goal, self.displayed)
        nearest = f"{self._describe(near[0])}, {self._format_figure(near)}"
        return (
            f"No total epsilon up to {most:g} reaches {self._format_goal()} on both"
            " halves of"
            f" the records; the nearest is {nearest}."
        )

    def _best_alternative(self, pair: Pair) -> str:
        """Return the best alternative in words: a floor, or a noised deployment."""
        alternatives = [p for p in self.scan if p[0].free != pair[0].free]
        if not alternatives:
            return "nothing that is sent was looked at"
        alternative = best_pair(alternatives, self.goal, self.displayed)
        return (
            f"{self._describe(alternative[0])} has {self._format_figure(alternative)}"
        )

    def _describe(self, deployment: Deployment) -> str:
        """Return a deployment in words, with its total epsilon."""
        words = deployment.describe(self.names)
        return (
            words
            if deployment.free
            else f"{words}, total epsilon {deployment.epsilon:g}"
        )

    def _format_figure(self, pair: Pair) -> str:
        """Return a pair's value in words."""
        value = self.goal.value(pair[1], self.displayed)
        if self.goal.share is None:
            return f"{self.goal.metric} {value:.3f}"
        return f"{value:.1%} of records with {self.goal.metric} {self.goal.target:g}"

    def _format_goal(self) -> str:
        """Return the goal in words."""
        if self.goal.share is None:
            return f"{self.goal.metric} {self.goal.target:g}"
        every = f"{self.goal.share:.0%} of the records"
        return f"{self.goal.metric} {self.goal.target:g} in {every}"
