"""Figure 2: right answers within .3 of .5, and the epsilon that they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from matplotlib.figure import Figure
from scipy.optimize import brentq

from curvote.papers.evidence import Evidence
from curvote.papers.qcu.concentration import (
    MECHANISMS,
    concentration_row,
    corrected_concentration,
    published_concentration,
)
from curvote.papers.qcu.panels import mechanism_curves
from curvote.papers.rows import Row, completed, select

THETA: Final = 0.3
TARGET: Final = 0.8
EPSILONS: Final = tuple(0.5 * step for step in range(1, 21))
# Sections 3.1 and 4.3: the concentration at epsilon 2, the epsilon for the target.
PRINTED: Final = {2.0: 46.0}
NEEDED: Final = {"laplace": 5.2, "pm_01": 1.8}
_MOST: Final = 50.0


@completed
def rows(_: str, evidence: Evidence | None = None) -> Iterator[Row]:
    """Yield the concentration of Laplace noise, and the epsilon for .8 by mechanism.

    The latter is of quantity ``value``, with the setting "epsilon for .8".
    """
    for epsilon in EPSILONS:
        yield concentration_row("laplace", epsilon, THETA, PRINTED.get(epsilon))
    for name in MECHANISMS:
        yield {
            "setting": f"epsilon for {TARGET:g}",
            "method": name,
            "quantity": "value",
            "published": NEEDED.get(name),
            "curvote": _needed_epsilon(published_concentration, name),
            "corrected": _needed_epsilon(corrected_concentration, name),
        }


def _needed_epsilon(
    concentration: Callable[[str, float, float], float], name: str
) -> float:
    def shortfall(epsilon: float) -> float:
        return concentration(name, epsilon, THETA) - TARGET

    return float(brentq(shortfall, 0.01, _MOST))


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw the concentration against epsilon."""
    return mechanism_curves(
        {"Laplace noise on .5": select(results, quantity="concentration")},
        lambda row: float(row["epsilon"]),
        ("epsilon (smaller: more private)", f"within {THETA:g} of .5 (%)"),
    )


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the epsilons of the text beside their concentrations."""
    for name, epsilon in NEEDED.items():
        brings = 100 * published_concentration(name, epsilon, THETA)
        (row,) = select(results, quantity="value", method=name)
        yield (
            f"{name}: the paper says epsilon {epsilon:g} for {TARGET:g}; it brings"
            f" {brings:.2f} %, and {row['curvote']:.3f} is needed"
        )
