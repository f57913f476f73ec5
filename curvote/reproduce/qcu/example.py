"""Figure 2: right answers within .3 of .5, and the epsilon that they take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from matplotlib.figure import Figure
from scipy.optimize import brentq

from curvote.reproduce.gather import Evidence
from curvote.reproduce.qcu.concentration import MECHANISMS, as_published, corrected
from curvote.reproduce.qcu.looks import along
from curvote.reproduce.rows import Row, finished, having

across: Final = "epsilon"
THETA: Final = 0.3
TARGET: Final = 0.8
EPSILONS: Final = tuple(0.5 * step for step in range(1, 21))
# Sections 3.1 and 4.3: the concentration at epsilon 2, the epsilon for the target.
PRINTED: Final = {2.0: 46.0}
NEEDED: Final = {"laplace": 5.2, "pm_01": 1.8}
_MOST: Final = 50.0


def rows(_: str, found: Evidence | None = None) -> list[Row]:
    """Return the concentration of Laplace noise, and the epsilon for .8 by mechanism.

    The latter is of quantity ``value``, with the setting "epsilon for .8".
    """
    return finished([*map(_at, EPSILONS), *map(_needed, MECHANISMS)])


def _at(epsilon: float) -> Row:
    return {
        "setting": f"theta={THETA:g}",
        "epsilon": epsilon,
        "method": "laplace",
        "quantity": "concentration",
        "published": PRINTED.get(epsilon),
        "curvote": 100 * as_published("laplace", epsilon, THETA),
        "corrected": 100 * corrected("laplace", epsilon, THETA),
    }


def _needed(name: str) -> Row:
    def lacking(epsilon: float) -> float:
        return as_published(name, epsilon, THETA) - TARGET

    def ours_lacking(epsilon: float) -> float:
        return corrected(name, epsilon, THETA) - TARGET

    return {
        "setting": f"epsilon for {TARGET:g}",
        "method": name,
        "quantity": "value",
        "published": NEEDED.get(name),
        "curvote": float(brentq(lacking, 0.01, _MOST)),
        "corrected": float(brentq(ours_lacking, 0.01, _MOST)),
    }


def figure(given: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw the concentration against epsilon."""
    return along(
        {"Laplace noise on .5": having(given, quantity="concentration")},
        lambda one: float(one["epsilon"]),
        ("epsilon (smaller: more private)", f"within {THETA:g} of .5 (%)"),
    )


def brief(given: Sequence[Row]) -> Sequence[Row]:
    """Return all rows."""
    return given


def said(given: Sequence[Row]) -> Iterator[str]:
    """Yield the epsilons that the text names beside what they bring."""
    for name, epsilon in NEEDED.items():
        brings = 100 * as_published(name, epsilon, THETA)
        (one,) = having(given, quantity="value", method=name)
        yield (
            f"{name}: the paper says epsilon {epsilon:g} for {TARGET:g}; it brings"
            f" {brings:.2f} %, and {one['curvote']:.3f} is needed"
        )
