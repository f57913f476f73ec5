"""Worth of labelled volunteers, before anybody is asked for anything.

By the formula: n_v records of d numbers with their labels are worth as much as reports
of N epsilon^2 = 6 (d + 1) n_v (`curvote.protocols.volunteers.worth`), and joined with
reports they add up. For a signal of known strength: volunteers are drawn, with means
of reports beside them (`curvote.theory.direct`), and read by the decoders that
protocols `volunteers` and `joined` have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from curvote import validate
from curvote.protocols.choice import choose_arm
from curvote.protocols.direct.arms import make_directions
from curvote.protocols.volunteers.asked import joined_arm
from curvote.protocols.volunteers.worth import volunteer_worth
from curvote.representation.direction import Directions
from curvote.server.directions import Line, ReportMean
from curvote.server.joining import VolunteerRecords, joint_classifier
from curvote.server.volunteered import ridge_logistic
from curvote.theory.direct import SLANTS, Expectation, World, honest_means
from curvote.theory.signals import Signal

Array = NDArray[np.float64]
Signals = Mapping[str, Signal]

VOLUNTEER_RUNS = 8  # for each of the random directions of a signal


@dataclass(frozen=True)
class JoinedRow:
    """One epsilon: N epsilon^2 of the reports, and what to expect of the join."""

    epsilon: float
    reports: float
    joined: dict[str, Expectation]


@dataclass(frozen=True)
class Offer:
    """``count`` labelled volunteers, what they are worth as N epsilon^2, and errors.

    ``alone`` says by signal what to expect of them without any report.
    """

    count: int
    worth: float
    alone: dict[str, Expectation]
    rows: list[JoinedRow]

    def better(self, row: JoinedRow) -> str:
        """Return which part by itself tells more: the formula's answer."""
        return "volunteers" if self.worth > row.reports else "reports"

    def document(self) -> dict[str, Any]:
        """Return plain values."""
        rows = [
            asdict(row)
            | {"better": self.better(row), "together": self.worth + row.reports}
            for row in self.rows
        ]
        alone = {name: asdict(expectation) for name, expectation in self.alone.items()}
        return {
            "volunteers": self.count,
            "worth": self.worth,
            "alone": alone,
            "rows": rows,
        }


def make_offer(
    count: int, clients: int, d: int, epsilons: Iterable[float], signals: Signals
) -> Offer:
    """Return the offer of ``count`` >= 1 volunteers beside ``clients`` reports.

    Records have ``d`` numbers; values out of range are a UserError.
    """
    n_v = validate.at_least(1, volunteers=count)
    alone = {name: expect_alone(n_v, d, signal) for name, signal in signals.items()}
    rows = [
        JoinedRow(
            epsilon,
            clients * epsilon**2,
            {
                name: expect_joined(n_v, clients, d, epsilon, signal)
                for name, signal in signals.items()
            },
        )
        for epsilon in epsilons
    ]
    return Offer(n_v, volunteer_worth(n_v, d), alone, rows)


def expect_alone(count: int, d: int, signal: Signal, *, seed: int = 0) -> Expectation:
    """Return the expectation of ``count`` volunteers' records of ``d`` numbers."""
    rng, directions = (
        np.random.default_rng(seed),
        make_directions("mean", d, "standard", "auto"),
    )

    def draw_lines(world: World) -> Iterator[Line]:
        for _ in range(VOLUNTEER_RUNS):
            yield ridge_logistic(*_draw_volunteers(rng, world, count))

    return _expect_lines(rng, signal, directions, draw_lines, "volunteers")


def expect_joined(
    count: int, n: int, d: int, epsilon: float, signal: Signal, *, seed: int = 0
) -> Expectation:
    """Return the expectation of them joined with ``n`` reports at ``epsilon``."""
    arm = joined_arm(choose_arm(n, d, epsilon).arm) or "mean"
    rng, directions = (
        np.random.default_rng(seed),
        make_directions(arm, d, "standard", "auto"),
    )

    def draw_lines(world: World) -> Iterator[Line]:
        for mean in honest_means(rng, world, epsilon, n, VOLUNTEER_RUNS):
            public = VolunteerRecords.from_records(
                directions, *_draw_volunteers(rng, world, count)
            )
            yield joint_classifier(ReportMean(mean, n), directions, epsilon, public)

    return _expect_lines(rng, signal, directions, draw_lines, "joined")


def _expect_lines(
    rng: np.random.Generator,
    signal: Signal,
    directions: Directions,
    draw_lines: Any,
    arm: str,
) -> Expectation:
    draw = partial(World.draw, rng, signal, directions)
    with threadpool_limits(limits=1):  # matrices are too small to share
        worlds = (draw() for _ in range(SLANTS))
        errors = [world.errors(list(draw_lines(world))) for world in worlds]
    return Expectation(float(np.mean(errors)), float(np.std(errors)), arm)


def _draw_volunteers(
    rng: np.random.Generator, world: World, count: int
) -> tuple[Array, NDArray[np.int64]]:
    """Draw records (n, d) and places of their classes (n,)."""
    z = rng.standard_normal((count, len(world.slant)))
    chance = world.signal.chance(z @ world.slant)
    return z, (rng.random(count) < chance).astype(np.int64)
