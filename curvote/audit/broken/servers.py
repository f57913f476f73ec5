"""Twins of releases about tables: what one record moves, the noise, what leaves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from curvote.audit.servers import examples
from curvote.audit.servers.subject import TableSubject, of_table
from curvote.chain.stage import Columns
from curvote.entropy import Entropy, SystemEntropy
from curvote.mechanisms.gaussian_noise import GaussianNoise, Steps
from curvote.privacy import Budget
from curvote.protocols.message import Known
from curvote.protocols.transfer.messages import ReleaseMessage, ReleasePayload
from curvote.transfer.forms.base import Form
from curvote.transfer.forms.cells import Cells
from curvote.transfer.forms.kernel import Kernel
from curvote.transfer.forms.moments import Moments
from curvote.transfer.releasing import own_stream
from curvote.transfer.task import Level, Task
from curvote.validate import FloatArray

DELTA = 1e-4


class Formed(ReleaseMessage):
    """Releases the sums of a form that is not in the registry."""

    def __init__(self, kind: Form) -> None:
        self.kind = kind

    def form(self, task: Any) -> Form:
        """Return what is summed."""
        return self.kind

    def noise(self, task: Any, n: int) -> GaussianNoise:
        """Return the form's own noise."""
        return self.kind.noise(task, task.spends(n))

    def draw(self, task: Any, known: Known, entropy: Entropy) -> Columns:
        """Return a release like the shipped one, but for its numbers."""
        refusing = super().draw(task, known, SystemEntropy())
        noise, stream = self.noise(task, len(known.z)), own_stream(entropy, task)
        return refusing | {"values": noise.add(self.sums(task, known), stream)[None]}


@dataclass(frozen=True, eq=False)
class FreshNoise(TableSubject):
    """Keeps the sums, and noises them anew for each query."""

    def answers(
        self, x: Known, points: FloatArray, releases: int, entropy: Entropy
    ) -> FloatArray:
        """Return answers each of which has noise of its own."""
        drawn = self.draw(x, releases * len(points), entropy)["values"]
        each = drawn.astype(np.float64).reshape(len(points), releases, -1)
        asked = zip(each, points[:, None], strict=True)
        return np.hstack([self.told(values, point) for values, point in asked])


class CentringUnscaled(Kernel):
    """Centres by the own rate, with the noise of a public centre (paper 002, (8))."""

    def sensitivity(self, task: Task) -> float:
        """Return what one record moves while the centre stands still."""
        joint = math.sqrt(len(task.params["bandwidths"]))
        return self.unit(task) * joint + math.sqrt(self.length(task))


class ClassesWithoutSqrt2(Cells):
    """Overlooks that a record that leaves one class arrives in another."""

    def sensitivity(self, task: Task) -> float:
        """Return the norm of one record."""
        return self.unit(task)


class BoundsFromRecords(Cells):
    """Takes each feature's bounds from the table."""

    def sums(self, task: Task, cube: FloatArray, codes: Steps) -> Steps:
        """Return the counts of records scaled by their own least and most."""
        least, most = cube.min(axis=0), cube.max(axis=0)
        scaled = (cube - least) / np.where(most > least, most - least, 1.0)
        return super().sums(task, scaled, codes)


class DeltaIgnored(Moments):
    """Adds the noise of delta = n^-2, whatever delta is stated."""

    def noise(self, task: Task, budget: Budget) -> GaussianNoise:
        """Return the noise of another delta."""
        return super().noise(task, replace(budget, delta=examples.RECORDS**-2))


class VisitedNoise(GaussianNoise):
    """Noise on what is not 0."""

    def add(self, steps: Steps, entropy: Entropy) -> Steps:
        """Return zeros as they are."""
        return np.where(steps != 0, super().add(steps, entropy), 0)


class VisitedCellsOnly(Cells):
    """Adds no noise to cells in which nobody is."""

    def noise(self, task: Task, budget: Budget) -> GaussianNoise:
        """Return noise for visited cells."""
        return VisitedNoise(self.sensitivity(task), budget.epsilon, budget.delta)


class RatePayload(ReleasePayload):
    """A release, and the share of the second class among the records."""

    rate: float


class RateBeside(ReleaseMessage):
    """Sends the exact own rate beside the centred sum, for whoever wants it back."""

    payload = RatePayload

    def draw(self, task: Any, known: Known, entropy: Entropy) -> Columns:
        """Return a release and the rate."""
        rate = np.array([np.mean(known.labels == 1)])
        return {"rate": rate, **super().draw(task, known, entropy)}


class BandwidthsFullBudget(Kernel):
    """Releases each of several bandwidths with the whole budget."""

    def sensitivity(self, task: Task) -> float:
        """Return what one record moves at one of them, by a public centre."""
        return self.unit(task) + math.sqrt(self.length(task))


def twins() -> dict[str, Callable[[float], TableSubject]]:
    """Return the twins by name."""
    formed: dict[str, tuple[type[Form], str]] = {
        "centring_unscaled": (CentringUnscaled, "kernel"),
        "classes_without_sqrt2": (ClassesWithoutSqrt2, "cells"),
        "bounds_from_records": (BoundsFromRecords, "cells"),
        "delta_ignored": (DeltaIgnored, "moments"),
        "visited_cells_only": (VisitedCellsOnly, "cells"),
        "bandwidths_full_budget": (BandwidthsFullBudget, "kernel_half"),
    }
    made: dict[str, Callable[[float], TableSubject]] = {
        name: partial(_twin, name=of, message=Formed(kind()))
        for name, (kind, of) in formed.items()
    }
    made["rate_beside"] = partial(_twin, name="kernel", message=RateBeside())
    made["fresh_noise"] = _fresh
    made["printed_noise"] = _printed
    return {f"transfer_{name}": twin for name, twin in made.items()}


def _twin(epsilon: float, *, name: str, message: ReleaseMessage) -> TableSubject:
    honest = of_table(examples.task(name, Level(epsilon, DELTA)), examples.RECORDS)
    return replace(honest, message=message)


def _fresh(epsilon: float) -> TableSubject:
    honest = of_table(examples.task("moments", Level(epsilon)), examples.RECORDS)
    return FreshNoise(**vars(honest))


def _printed(epsilon: float) -> TableSubject:
    """Return the form of studies, where its formula claims too much."""
    del epsilon
    task = examples.task("kernel_half", Level(20.0, DELTA), bandwidths=[1.0])
    return of_table(replace(task, release="printed"), examples.RECORDS)
