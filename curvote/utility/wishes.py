"""What is wanted of a deployment, and how a recommendation says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from curvote.errors import UserError
from curvote.utility.deployments.deployment import Deployment
from curvote.utility.halves import Half
from curvote.utility.measured import Measured
from curvote.validate import FloatArray

Metric = Literal["agreement", "accuracy"]
Pair = tuple[Deployment, Measured]
Scan = Sequence[Pair]


@dataclass(frozen=True)
class Wish:
    """A metric, averaged, or with ``share`` to reach ``target`` in so many records."""

    metric: Metric = "agreement"
    target: float | None = None
    share: float | None = None

    def value(self, measured: Measured, which: Half) -> float:
        """Return what is compared: the mean, or the share of records at the target.

        Drawn records count as there where their interval lies above the target.
        """
        if self.share is None or self.target is None:
            return float(self._each(measured)[which].mean())
        return float(np.mean(self._sure(measured)[which] >= self.target))

    def _each(self, measured: Measured) -> FloatArray:
        if self.metric == "agreement":
            return measured.agreement
        if measured.right is None:
            raise UserError("Accuracy needs labels: give them, or ask for agreement.")
        return measured.right

    def _sure(self, measured: Measured) -> FloatArray:
        return measured.lower if self.metric == "agreement" else self._each(measured)

    @property
    def needed(self) -> float:
        """What the value must reach."""
        given = self.target if self.share is None else self.share
        return 0.0 if given is None else given


def top(scan: Scan, wish: Wish, which: Half) -> Pair:
    """Return the pair of the highest value; of equal ones that of least epsilon."""
    ordered = sorted(scan, key=lambda pair: pair[0].epsilon)
    return max(ordered, key=lambda pair: wish.value(pair[1], which))


@dataclass(frozen=True)
class Words:
    """A recommendation's reason, from figures of the records that are ``shown``.

    The half that did not choose, or all of them for what costs nothing.
    """

    names: tuple[str, ...]
    scan: Scan
    wish: Wish
    shown: Half

    def why(self, found: Pair) -> str:
        """Return why this one."""
        n, against = int(self.shown.sum()), self._against(found)
        begin = "Send nothing" if found[0].free else f"Send {self._named(found[0])}"
        other = f"the {n} records that did not choose it"
        basis = f"on all {n} records" if found[0].free else f"on {other}"
        return f"{begin}: {self._figure(found)} {basis}; {against}."

    def none(self) -> str:
        """Return why none."""
        most = max(deployment.epsilon for deployment, _ in self.scan)
        near = top(self.scan, self.wish, self.shown)
        nearest = f"{self._named(near[0])}, {self._figure(near)}"
        return (
            f"No total epsilon up to {most:g} reaches {self._goal()} on both halves of"
            f" the records; the nearest is {nearest}."
        )

    def _against(self, found: Pair) -> str:
        """Return the best of the other kind: a floor, or what is sent for as little."""
        others = [p for p in self.scan if p[0].free != found[0].free]
        if not others:
            return "nothing that is sent was looked at"
        other = top(others, self.wish, self.shown)
        return f"{self._named(other[0])} has {self._figure(other)}"

    def _named(self, deployment: Deployment) -> str:
        words = deployment.words(self.names)
        return (
            words
            if deployment.free
            else f"{words}, total epsilon {deployment.epsilon:g}"
        )

    def _figure(self, pair: Pair) -> str:
        value = self.wish.value(pair[1], self.shown)
        if self.wish.share is None:
            return f"{self.wish.metric} {value:.3f}"
        return f"{value:.1%} of records with {self.wish.metric} {self.wish.target:g}"

    def _goal(self) -> str:
        if self.wish.share is None:
            return f"{self.wish.metric} {self.wish.target:g}"
        every = f"{self.wish.share:.0%} of the records"
        return f"{self.wish.metric} {self.wish.target:g} in {every}"
