"""How many numbers stand for a curve: what `project.size: auto` is, from public facts.

Too few numbers miss what tells the classes apart, however many clients report; each
further one costs noise. The more there is to learn from, N epsilon^2, the more numbers
pay: d = c (N epsilon^2)^a, the nearest size that the basis has. Constants are those of
least regret on simulated laws of curves (benchmarks/bench_size.py, docs/choosing.md).
"""

from __future__ import annotations

from typing import Any, Final

from curvote import validate
from curvote.chain.axis import EPSILON, Settings
from curvote.chain.lookup import system
from curvote.chain.system import Part
from curvote.datasets.lookup import chosen
from curvote.errors import UserError
from curvote.protocols.direct.arms import WIDEST
from curvote.protocols.settings import Representation
from curvote.representation.basis import check_size

AUTO: Final = "auto"
FACTOR, POWER = 2.0, 1 / 6
_WHERE = ("project", "size")


def size_for(n: int, epsilon: float) -> float:
    """Return what the rule asks for where ``n`` clients report with ``epsilon`` each.

    It is a real number: a basis has some whole ones (`sized`).
    """
    n, epsilon = validate.at_least(1, n=n), validate.positive(epsilon=epsilon)
    return float(FACTOR * (n * epsilon**2) ** POWER)


def nearest(
    wanted: float, basis: str, order: int = 4, points: int | None = None
) -> int:
    """Return the size of ``basis`` nearest to what is wanted, of two the smaller.

    A curve has ``points`` values, if that is known; a size is `WIDEST` at most.
    """
    sizes = sorted(range(1, WIDEST + 1), key=lambda size: abs(size - wanted))
    fit = (size for size in sizes if _fits(basis, size, order, points))
    return next(fit, round(wanted))  # a basis without any is refused elsewhere


def _fits(basis: str, size: int, order: int, points: int | None) -> bool:
    try:
        check_size(basis, size, order, points)
    except UserError:
        return False
    return True


def sized(pipeline: Settings) -> list[Part]:
    """Return the settings with a stated size, those of each epsilon where a rule says.

    A system without that axis gets the size of its largest epsilon. Whoever trains or
    votes reports; a system that does not count them is a UserError.
    """
    project = getattr(pipeline, "project", None)
    if project is None or project.size != AUTO:
        return [Part(pipeline)]
    if EPSILON in system(pipeline.protocol).axes:
        return [
            _sized(pipeline, project, epsilon, {"epsilon": epsilon})
            for epsilon in pipeline.epsilon
        ]
    return [_sized(pipeline, project, max(pipeline.epsilon), {})]


def _sized(
    pipeline: Settings, project: Representation, epsilon: float, pairs: dict[str, Any]
) -> Part:
    n = _reporting(pipeline)
    wanted = size_for(n, epsilon)
    size = nearest(wanted, project.basis, project.order, _points(pipeline))
    stated = {name: [value] for name, value in pairs.items()}
    own = pipeline.model_copy(
        update={"project": project.model_copy(update={"size": size}), **stated}
    )
    reason = f"{FACTOR:g} (N epsilon^2)^{POWER:.3g} = {wanted:.1f}, N = {n:,}"
    return Part(own, tuple(pairs.items()), f"d = {size}", reason)


def _reporting(pipeline: Settings) -> int:
    counts = pipeline.clients.model_dump()
    if "train" not in counts:
        message = (
            f"{pipeline.protocol} does not say how many clients report: state the size."
        )
        raise UserError(message, where=_WHERE)
    return int(counts["train"] + counts.get("vote", 0))


def _points(pipeline: Settings) -> int | None:
    """Return how many values a curve has, as far as it is known without its file."""
    dataset, parameters = chosen(pipeline.source)
    known = dataset.width(parameters)
    return None if known is None else int(known)
