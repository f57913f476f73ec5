"""Figure 4: probability of an output within theta of the value .5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np
from matplotlib.figure import Figure

from curvote.base.errors import InternalError
from curvote.mechanisms.base import Mixture, product_law
from curvote.papers.evidence import Evidence
from curvote.papers.qcu import laws
from curvote.papers.qcu.laws import our_channel
from curvote.papers.qcu.panels import mechanism_curves
from curvote.papers.rows import Row, completed, select
from curvote.systems.utility.method.profile import concentration_probability

VALUE: Final = np.array([[0.5]])
EPSILONS: Final = (2.0, 4.0, 6.0)
THETAS: Final = tuple(round(0.01 * step, 2) for step in range(10, 51))
MECHANISMS: Final = ("laplace", "pm_01", "sw_01", "k_rr", "exponential")
# What section 4.1.3 states.
PRINTED: Final = {
    ("laplace", 2.0, 0.3): 46.0,
    ("pm_01", 2.0, 0.3): 86.0,
    ("k_rr", 2.0, 0.3): 63.0,
}


@completed
def rows(_: str, evidence: Evidence | None = None) -> Iterator[Row]:
    """Yield the concentration by ``setting`` (theta), ``method`` and epsilon.

    ``curvote`` by the definitions of the appendix, whose exponential spends half of
    epsilon; ``corrected_concentration`` by our mechanisms, clipped to [0, 1].
    """
    for epsilon, name, theta in product(EPSILONS, MECHANISMS, THETAS):
        yield concentration_row(
            name, epsilon, theta, PRINTED.get((name, epsilon, theta))
        )


def concentration_row(
    name: str, epsilon: float, theta: float, printed: float | None
) -> Row:
    """Return the row of a mechanism's concentration."""
    return {
        "setting": f"theta={theta:g}",
        "epsilon": epsilon,
        "method": name,
        "quantity": "concentration",
        "published": printed,
        "curvote": 100 * published_concentration(name, epsilon, theta),
        "corrected": 100 * corrected_concentration(name, epsilon, theta),
    }


def published_concentration(name: str, epsilon: float, theta: float) -> float:
    """Return the probability by the definitions of the appendix.

    Laplace noise is not drawn again here; k-RR has 101 levels, so has the exponential
    mechanism, with rate epsilon/2.
    """
    law: laws.PaperLaw = {
        "exponential": laws.Exponential(epsilon / 2, size=101),
        "k_rr": laws.KeptRR(epsilon, other_levels=100),
    }.get(name) or laws.paper_law(name, epsilon)
    near = concentration_probability(product_law(law.law(VALUE[0])), VALUE, theta)
    return float((near * law.inside(VALUE[0]))[0])


def corrected_concentration(name: str, epsilon: float, theta: float) -> float:
    """Return the probability for our mechanism on [0, 1], clipped."""
    law = _our_mechanism(name, epsilon)
    return float(concentration_probability(law, VALUE, theta)[0])


@lru_cache(maxsize=64)
def _our_mechanism(name: str, epsilon: float) -> Mixture:
    law = our_channel(name, epsilon, 1).law(VALUE)
    if law is None:
        raise InternalError(f"{name} states no law")
    return law


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel an epsilon: the concentration against theta."""
    return mechanism_curves(
        {f"epsilon {level:g}": select(results, epsilon=level) for level in EPSILONS},
        lambda row: float(row["setting"].removeprefix("theta=")),
        ("theta", "within theta of .5 (%)"),
    )


def terminal_rows(results: Sequence[Row]) -> list[Row]:
    """Return the rows at tenths."""
    tenths = {f"theta={step / 10:g}" for step in range(1, 6)}
    return [row for row in results if row["setting"] in tenths]


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the leading mechanism where the paper says that it is PM."""
    yield "the paper: from epsilon 2 and theta .1 on, PM is generally the best"
    for epsilon in EPSILONS:
        selected = select(results, epsilon=epsilon)
        theta_rows = (select(selected, setting=f"theta={t:g}") for t in THETAS[:-1])
        best = [
            str(max(some, key=lambda row: float(row["curvote"]))["method"])
            for some in theta_rows
        ]
        changes = [
            f"{name} from theta {theta:g}"
            for name, before, theta in zip(best, [None, *best], THETAS, strict=False)
            if name != before
        ]
        yield f"  epsilon {epsilon:g}: {', '.join(changes)}"
