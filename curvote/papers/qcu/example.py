"""Figure 2: right answers within .3 of .5, and the epsilon that they take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from matplotlib.figure import Figure
from scipy.optimize import brentq

from curvote.papers.evidence import Evidence
from curvote.papers.qcu.concentration import (
    MECHANISMS,
    corrected_concentration,
    published_concentration,
)
from curvote.papers.qcu.panels import mechanism_curves
from curvote.papers.rows import Row, complete_rows, select

across: Final = "epsilon"
THETA: Final = 0.3
TARGET: Final = 0.8
EPSILONS: Final = tuple(0.5 * step for step in range(1, 21))
# Sections 3.1 and 4.3: the concentration at epsilon 2, the epsilon for the target.
PRINTED: Final = {2.0: 46.0}
NEEDED: Final = {"laplace": 5.2, "pm_01": 1.8}
_MOST: Final = 50.0


def rows(_: str, evidence: Evidence | None = None) -> list[Row]:
    """Return the concentration of Laplace noise, and the epsilon for .8 by mechanism.

    The latter is of quantity ``value``, with the setting "epsilon for .8".
    """
    return complete_rows(
        [*map(_laplace_row, EPSILONS), *map(_needed_epsilon_row, MECHANISMS)]
    )


def _laplace_row(epsilon: float) -> Row:
    return {
        "setting": f"theta={THETA:g}",
        "epsilon": epsilon,
        "method": "laplace",
        "quantity": "concentration",
        "published": PRINTED.get(epsilon),
        "curvote": 100 * published_concentration("laplace", epsilon, THETA),
        "corrected": 100 * corrected_concentration("laplace", epsilon, THETA),
    }


def _needed_epsilon_row(name: str) -> Row:
    def paper_shortfall(epsilon: float) -> float:
        return published_concentration(name, epsilon, THETA) - TARGET

    def our_shortfall(epsilon: float) -> float:
        return corrected_concentration(name, epsilon, THETA) - TARGET

    return {
        "setting": f"epsilon for {TARGET:g}",
        "method": name,
        "quantity": "value",
        "published": NEEDED.get(name),
        "curvote": float(brentq(paper_shortfall, 0.01, _MOST)),
        "corrected": float(brentq(our_shortfall, 0.01, _MOST)),
    }


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw the concentration against epsilon."""
    return mechanism_curves(
        {"Laplace noise on .5": select(results, quantity="concentration")},
        lambda row: float(row["epsilon"]),
        ("epsilon (smaller: more private)", f"within {THETA:g} of .5 (%)"),
    )


def terminal_rows(results: Sequence[Row]) -> Sequence[Row]:
    """Return all rows."""
    return results


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the epsilons of the text beside their concentrations."""
    for name, epsilon in NEEDED.items():
        brings = 100 * published_concentration(name, epsilon, THETA)
        (row,) = select(results, quantity="value", method=name)
        yield (
            f"{name}: the paper says epsilon {epsilon:g} for {TARGET:g}; it brings"
            f" {brings:.2f} %, and {row['curvote']:.3f} is needed"
        )
