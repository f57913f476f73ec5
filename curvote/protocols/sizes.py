"""How many numbers stand for a curve: what `project.size: auto` is, from public facts.

Too few numbers miss what tells the classes apart, however many clients report; each
further one costs noise. The more there is to learn from, the more numbers pay:

    d = c (N epsilon^2)^a,

the nearest size that the basis has. Both constants are those of least regret on
simulated laws of curves, learnt by `direct` (benchmarks/bench_size.py,
docs/choosing.md). A report that noises its numbers one by one says less, a record that
nothing hides says more: for them N epsilon^2 is that of the reports of `direct` which
leave as much noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from curvote import validate
from curvote.chain.axis import EPSILON, Settings
from curvote.chain.lookup import system
from curvote.chain.system import Part
from curvote.client.report import Reporter
from curvote.datasets.lookup import chosen
from curvote.errors import UserError
from curvote.protocols.direct.arms import WIDEST
from curvote.protocols.volunteers.methods import VOLUNTEERS
from curvote.representation.basis import check_size
from curvote.representation.direction import SQUARE

AUTO: Final = "auto"
FACTOR, POWER = 3.5, 0.1
# One number alone, a curve's mean for one, is no curve.
_FEWEST = 2
# A report of `direct` leaves this p/epsilon^2 of noise in a number of mean square 1
# (curvote.protocols.choice).
_NOISE = 5.9
_WHERE = ("project", "size")


def size_for(n: int, epsilon: float) -> float:
    """Return what the rule asks for where ``n`` clients report with ``epsilon`` each.

    It is a real number: a basis has some whole ones (`nearest`).
    """
    n, epsilon = validate.at_least(1, n=n), validate.positive(epsilon=epsilon)
    return _wanted(n * epsilon**2)


def _wanted(worth: float) -> float:
    return float(FACTOR * worth**POWER)


def nearest(
    wanted: Callable[[int], float],
    basis: str,
    order: int = 4,
    points: int | None = None,
) -> int:
    """Return the size of ``basis`` nearest to what is wanted there, of two the smaller.

    ``wanted`` does not grow with the size. A curve has ``points`` values, if that is
    known; a size is `WIDEST` at most. A basis without sizes is refused elsewhere.
    """
    best, least = 0, np.inf
    for size in _sizes(basis, order, points):
        off = size - wanted(size)
        if abs(off) < least:
            best, least = size, abs(off)
        if off >= 0:
            break
    return best or round(wanted(_FEWEST))


def _sizes(basis: str, order: int, points: int | None) -> Iterator[int]:
    for size in range(_FEWEST, WIDEST + 1):
        try:
            check_size(basis, size, order, points)
        except UserError:
            continue
        yield size


@dataclass(frozen=True)
class Asked:
    """N epsilon^2 as a size leaves it, for settings in which ``n`` clients report.

    Without ``epsilon`` they give their records as they are.
    """

    pipeline: Settings
    n: int
    epsilon: float | None

    def worth(self, size: int) -> float:
        """Return N epsilon^2, or that of the reports of `direct` that are as noisy."""
        if self.epsilon is None:
            return self.n * _NOISE * (size + 1)
        privatize = getattr(self.pipeline, "privatize", None)
        if privatize is None:
            return self.n * self.epsilon**2
        share, params = privatize.label_share, privatize.params
        mechanism = privatize.mechanism
        try:
            made = Reporter.build(size, self.epsilon, mechanism, share, params)
        except UserError:
            return self.n * self.epsilon**2  # it is refused elsewhere
        return self.n * _NOISE * (size + 1) * self._left(made)

    def _left(self, made: Reporter) -> float:
        """Return the part of a report's variance that is the record's."""
        square = SQUARE.get(self.pipeline.project.rescale, 1.0)
        noise = float(np.mean(made.features.variance(np.zeros((1, made.features.d)))))
        return float((2 * made.label.keep - 1) ** 2 * square / (square + noise))

    def wanted(self, size: int) -> float:
        """Return what the rule asks for, seen from a size."""
        return _wanted(self.worth(size))


def sized(pipeline: Settings) -> list[Part]:
    """Return the settings with a stated size, those of each epsilon where a rule says.

    Whoever trains or votes reports, or gives a record to a system without that axis,
    volunteers where they are its only source; where nobody does, it is a UserError.
    """
    project = getattr(pipeline, "project", None)
    if project is None or project.size != AUTO:
        return [Part(pipeline)]
    if EPSILON in system(pipeline.protocol).axes:
        return [
            _sized(pipeline, epsilon, {"epsilon": epsilon})
            for epsilon in pipeline.epsilon
        ]
    return [_sized(pipeline, None, {})]


def _sized(pipeline: Settings, epsilon: float | None, pairs: dict[str, Any]) -> Part:
    project = pipeline.project
    asked = Asked(pipeline, _reporting(pipeline), epsilon)
    size = nearest(asked.wanted, project.basis, project.order, _points(pipeline))
    stated = {name: [value] for name, value in pairs.items()}
    update = {"project": project.model_copy(update={"size": size}), **stated}
    own = pipeline.model_copy(update=update)
    return Part(own, tuple(pairs.items()), f"d = {size}", _reason(asked, size))


def _reason(asked: Asked, size: int) -> str:
    worth, rule = asked.worth(size), f"{FACTOR:g} (N epsilon^2)^{POWER:g}"
    known = f"{rule} = {asked.wanted(size):.1f}"
    if asked.epsilon and worth == asked.n * asked.epsilon**2:
        return f"{known}, N epsilon^2 = {worth:,.6g}"
    shown = f"{worth:,.0f}" if worth >= 10 else f"{worth:.2g}"
    return f"{known}, as noisy as `direct` at N epsilon^2 = {shown}"


def _reporting(pipeline: Settings) -> int:
    n = int(pipeline.clients.train + pipeline.clients.vote)
    n = int(pipeline.clients.public) if pipeline.protocol == VOLUNTEERS.name else n
    if n < 1:
        message = "a rule asks how many clients train or vote: nobody; state the size."
        raise UserError(message, where=_WHERE)
    return n


def _points(pipeline: Settings) -> int | None:
    """Return how many values a curve has, as far as it is known without its file."""
    dataset, parameters = chosen(pipeline.source)
    known = dataset.width(parameters)
    return None if known is None else int(known)
