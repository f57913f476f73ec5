"""Broken twins of servers' releases: sensitivities, bounds, noise, fields."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from curvote.audit.twins import Make
from curvote.base.entropy import Entropy, SystemEntropy
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray
from curvote.chain.stage import Columns
from curvote.mechanisms.gaussian import GaussianNoise, Steps
from curvote.messages.message import ClientData
from curvote.systems.transfer.audit import tables
from curvote.systems.transfer.audit.subject import TableSubject, table_subject
from curvote.systems.transfer.messages import ReleaseMessage, ReleasePayload
from curvote.systems.transfer.method.forms import cells, kernel, moments
from curvote.systems.transfer.method.release import server_stream
from curvote.systems.transfer.method.task import Form, Level, Task


class CentringUnscaled(kernel.Kernel):
    """Centres by the own rate, with the noise of a public centre (paper 002, (8))."""

    def sensitivity(self, task: Task) -> float:
        joint = math.sqrt(len(task.params["bandwidths"]))
        return self.unit(task) * joint + math.sqrt(self.length(task))


class FormMessage(ReleaseMessage):
    """Message of a form that is not in the registry."""

    def __init__(self, kind: Form) -> None:
        self.kind = kind

    def form(self, task: Any) -> Form:
        return self.kind

    def noise(self, task: Any, n: int) -> GaussianNoise:
        return self.kind.noise(task, task.cost(n))

    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        refusing = super().draw(task, data, SystemEntropy())
        noise, stream = self.noise(task, len(data.z)), server_stream(entropy, task)
        return refusing | {"values": noise.add(self.sums(task, data), stream)[None]}


@dataclass(frozen=True, eq=False)
class FreshNoise(TableSubject):
    """Keeps the sums, and noises them anew for each query."""

    def answers(
        self, x: ClientData, points: FloatArray, releases: int, entropy: Entropy
    ) -> FloatArray:
        releases_drawn = self.draw(x, releases * len(points), entropy)["values"]
        by_point = releases_drawn.astype(np.float64).reshape(len(points), releases, -1)
        pairs = zip(by_point, points[:, None], strict=True)
        return np.hstack([self.query_answers(values, point) for values, point in pairs])


class ClassesWithoutSqrt2(cells.Cells):
    """Overlooks that a record that leaves one class arrives in another."""

    def sensitivity(self, task: Task) -> float:
        return self.unit(task)


class StepsForgotten(cells.Cells):
    """Counts in fine steps, and makes the noise for steps of one record."""

    def sensitivity(self, task: Task) -> float:
        return math.sqrt(2 * task.params["grids"])


class ProductsTooLong(moments.Moments):
    """Lets the products beside the class sums be twice as long as they may."""

    def _pair_unit(self, task: Task) -> float:
        return 2 * super()._pair_unit(task)


class BoundsFromRecords(cells.Cells):
    """Takes each feature's bounds from the table."""

    def sums(self, task: Task, cube: FloatArray, codes: Steps) -> Steps:
        least, most = cube.min(axis=0), cube.max(axis=0)
        scaled = (cube - least) / np.where(most > least, most - least, 1.0)
        return super().sums(task, scaled, codes)


class DeltaIgnored(moments.Moments):
    """Adds the noise of delta = n^-2 for every stated delta."""

    def noise(self, task: Task, budget: Budget) -> GaussianNoise:
        return super().noise(task, replace(budget, delta=tables.RECORDS**-2))


class VisitedNoise(GaussianNoise):
    """Noise on nonzero counts only."""

    def add(self, steps: Steps, entropy: Entropy) -> Steps:
        return np.where(steps != 0, super().add(steps, entropy), 0)


class VisitedCellsOnly(cells.Cells):
    """Adds no noise to cells in which nobody is."""

    def noise(self, task: Task, budget: Budget) -> GaussianNoise:
        return VisitedNoise(self.sensitivity(task), budget.epsilon, budget.delta)


class RatePayload(ReleasePayload):
    """A release, and the share of the second class among the records."""

    rate: float


class RateBeside(ReleaseMessage):
    """Sends the exact own rate beside the centred sum, for whoever wants it back."""

    payload = RatePayload

    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        rate = np.array([np.mean(data.labels == 1)])
        return {"rate": rate, **super().draw(task, data, entropy)}


class BandwidthsFullBudget(kernel.Kernel):
    """Releases each of several bandwidths with the whole budget."""

    def sensitivity(self, task: Task) -> float:
        return self.unit(task) + math.sqrt(self.length(task))


def fresh_noise(epsilon: float) -> TableSubject:
    """Return the twin with fresh noise for each query."""
    task = tables.example_task("moments", Level(epsilon))
    return FreshNoise(**vars(table_subject(task, tables.RECORDS)))


def form_twin(message: ReleaseMessage, example: str) -> Make:
    """Return the twin of a server's message, at a stated delta."""
    return lambda epsilon: replace(
        table_subject(
            tables.example_task(example, Level(epsilon, tables.DELTAS[1])),
            tables.RECORDS,
        ),
        message=message,
    )
