"""Automatic number of coefficients of a curve, from public facts.

Too few numbers miss what tells the classes apart, however many clients report; each
further one costs noise. The more there is to learn from, the more numbers pay:

    d = c (N epsilon^2)^a,

the nearest size that the basis has. Both constants are those of least regret on
simulated laws of curves, learnt by `direct` (benchmarks/bench_size.py,
docs/choosing.md). A report that noises its numbers one by one says less, a record that
nothing hides says more: for them N epsilon^2 is that of the reports of `direct` which
leave as much noise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.chain.axis import EPSILON, PipelineSettings
from curvote.chain.lookup import find_system
from curvote.chain.system import Part
from curvote.client.report import Reporter
from curvote.curves.basis import AUTO, FPCA, VOLUNTEERS_BASES, check_size
from curvote.curves.direction import MEAN_SQUARE
from curvote.data.lookup import channel_count, resolve_source
from curvote.messages import evidence
from curvote.messages.arms import MAX_WIDTH
from curvote.messages.measures import VOLUNTEERS

AUTO_SIZE: Final = AUTO
FACTOR, POWER = 3.5, 0.1
# One number alone, a curve's mean for one, is no curve.
_MIN_SIZE = 2
# A report of `direct` leaves this p/epsilon^2 of noise in a number of mean square 1
# (curvote.systems.direct.system).
_DIRECT_NOISE = 5.9
_SETTING_PATH = ("project", "size")


def wanted_size(n: int, epsilon: float) -> float:
    """Return the size by rule for ``n`` clients who report at ``epsilon``.

    It is a real number: a basis has some whole ones (`nearest_size`).
    """
    n, epsilon = validate.at_least(1, n=n), validate.positive(epsilon=epsilon)
    return _size_rule(n * epsilon**2)


def _size_rule(worth: float) -> float:
    return float(FACTOR * worth**POWER)


def nearest_size(
    wanted: Callable[[int], float],
    basis: str,
    order: int = 4,
    points: int | None = None,
) -> int:
    """Return the size of ``basis`` nearest to the wanted one.

    ``wanted`` does not grow with the size. A curve has ``points`` values, if that is
    known; a size is `MAX_WIDTH` at most. A basis without sizes is refused elsewhere.
    """
    best, distance = 0, np.inf
    for size in range(_MIN_SIZE, MAX_WIDTH + 1):
        try:
            check_size(basis, size, order, points)
        except UserError:
            continue
        difference = size - wanted(size)
        if abs(difference) < distance:
            best, distance = size, abs(difference)
        if difference >= 0:
            break
    return best or round(wanted(_MIN_SIZE))


@dataclass(frozen=True)
class ReportWorth:
    """Value of N epsilon^2 as a size leaves it, for ``n`` reports.

    Without ``epsilon`` they give their records as they are. ``channels`` of one size
    share what the rule asks for.
    """

    pipeline: PipelineSettings
    n: int
    epsilon: float | None
    channels: int = 1

    def worth(self, size: int) -> float:
        """Return N epsilon^2, or that of the reports of `direct` that are as noisy."""
        size *= self.channels
        if self.epsilon is None:
            return self.n * _DIRECT_NOISE * (size + 1)
        privatize = getattr(self.pipeline, "privatize", None)
        if privatize is None:
            return self.n * self.epsilon**2
        share, params = privatize.label_share, privatize.params
        mechanism = privatize.mechanism
        try:
            reporter = Reporter.build(size, self.epsilon, mechanism, share, params)
        except UserError:
            return self.n * self.epsilon**2  # it is refused elsewhere
        square = MEAN_SQUARE.get(self.pipeline.project.rescale, 1.0)
        features = reporter.features
        noise = float(np.mean(features.variance(np.zeros((1, features.d)))))
        # The part of a report's variance that is the record's.
        signal = float((2 * reporter.label.keep - 1) ** 2 * square / (square + noise))
        return self.n * _DIRECT_NOISE * (size + 1) * signal

    def wanted_size(self, size: int) -> float:
        """Return the size that the rule asks for, seen from a size."""
        return _size_rule(self.worth(size)) / self.channels


def resolve_sizes(pipeline: PipelineSettings) -> list[Part]:
    """Return the settings with a stated size, by epsilon where a rule says.

    Whoever trains or votes reports, or gives a record to a system without that axis,
    volunteers where they are its only source; where nobody does, it is a UserError.
    """
    project = getattr(pipeline, "project", None)
    by_evidence = project is not None and project.basis == AUTO
    if project is None or (project.size != AUTO_SIZE and not by_evidence):
        return [Part(pipeline)]
    if EPSILON not in find_system(pipeline.protocol).axes:
        return [_resolve_size(pipeline, None, {})]
    return [_resolve_size(pipeline, e, {"epsilon": e}) for e in pipeline.epsilon]


def _resolve_size(
    pipeline: PipelineSettings, epsilon: float | None, pairs: dict[str, Any]
) -> Part:
    project, clients = pipeline.project, pipeline.clients
    n = int(clients.train + clients.vote)
    n = int(clients.public) if pipeline.protocol == VOLUNTEERS.name else n
    if n < 1:
        message = (
            "the rule counts who trains or votes, which nobody does; state a size."
        )
        raise UserError(message, where=_SETTING_PATH)
    worth = ReportWorth(pipeline, n, epsilon, channel_count(pipeline.source))
    dataset, parameters = resolve_source(pipeline.source)
    width = dataset.width(parameters)
    points = None if width is None else int(width) // worth.channels
    noise: float | None = None
    if project.basis in VOLUNTEERS_BASES:
        # Of a direction numbers that stay 0 cost nothing; of noised ones each does.
        size = project.width or min(evidence.WIDTH, points or evidence.WIDTH)
        if hasattr(pipeline, "privatize") and not project.width:
            by_rule = nearest_size(worth.wanted_size, FPCA, project.order, points)
            size = min(size, by_rule)
        noise = _DIRECT_NOISE / worth.worth(size)
    else:
        size = nearest_size(worth.wanted_size, project.basis, project.order, points)
    resolved = project.model_copy(update={"size": size, "noise": noise})
    by_axis = {name: [value] for name, value in pairs.items()}
    settings = pipeline.model_copy(update={"project": resolved} | by_axis)
    if noise is not None:
        tried = evidence.Choice(project.basis, size, project.rescale, noise).candidates
        words = (
            f"the labelled records of {clients.public} volunteers choose one of"
            f" {len(tried)} bases and sizes, replicate by replicate; reports leave a"
            f" noise of {noise:.2g} in each number"
        )
        return Part(settings, tuple(pairs.items()), f"d <= {size}", words)
    value, wanted = worth.worth(size), worth.wanted_size(size)
    words = f"{FACTOR:g} (N epsilon^2)^{POWER:g} = {wanted:.1f} numbers a record are"
    words += " worth their noise, "
    if epsilon and value == n * epsilon**2:
        words += f"N epsilon^2 = {value:,.6g}"
    else:
        text = f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
        words += f"which is that of `direct` at N epsilon^2 = {text}"
    return Part(settings, tuple(pairs.items()), f"d = {size}", words)
