"""Concentration of QCU's mechanisms at the value .5: figures 2 and 4."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import brentq

from curvote.base.errors import InternalError
from curvote.mechanisms.base import Mixture, product_law
from curvote.papers import drawing
from curvote.papers.qcu import laws
from curvote.papers.reproduction import Evidence
from curvote.papers.rows import Row, completed, select
from curvote.systems.utility.method.profile import concentration_probability


def mechanism_curves(
    panels_of: Mapping[str, Sequence[Row]],
    place: Callable[[Row], float],
    labels: tuple[str, str],
) -> Figure:
    """Draw a panel for each title, a line for each mechanism.

    Dotted is ours, where it differs. ``labels`` name the axes, x and y.
    """
    figure, axes = drawing.panels(len(panels_of), 3.4)
    for ax, (title, results) in zip(axes, panels_of.items(), strict=True):
        for name, look in laws.LOOKS.items():
            selected = sorted(select(results, method=name), key=place)
            for column, line in (("curvote", "-"), ("corrected", ":")):
                at, values = map(place, selected), (row[column] for row in selected)
                ax.plot([*at], [*values], color=look.colour, ls=line, lw=1.4)
        ax.set_xlabel(labels[0])
        ax.grid(axis="y")
        drawing.panel_title(ax, title)
    drawing.label_y_axes(axes, labels[1])
    names = {row["method"] for results in panels_of.values() for row in results}
    handles = [
        drawing.PlotLine(name, replace(look, marker=""), ()).handle()
        for name, look in laws.LOOKS.items()
        if name in names
    ]
    drawing.fitting_legend(figure, handles)
    return figure


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
def theta_rows(_: str, evidence: Evidence | None = None) -> Iterator[Row]:
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
    law = laws.our_channel(name, epsilon, 1).law(VALUE)
    if law is None:
        raise InternalError(f"{name} states no law")
    return law


def theta_figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel an epsilon: the concentration against theta."""
    return mechanism_curves(
        {f"epsilon {level:g}": select(results, epsilon=level) for level in EPSILONS},
        lambda row: float(row["setting"].removeprefix("theta=")),
        ("theta", "within theta of .5 (%)"),
    )


def theta_terminal_rows(results: Sequence[Row]) -> list[Row]:
    """Return the rows at tenths."""
    tenths = {f"theta={step / 10:g}" for step in range(1, 6)}
    return [row for row in results if row["setting"] in tenths]


def theta_conclusions(results: Sequence[Row]) -> Iterator[str]:
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


THETA: Final = 0.3
TARGET: Final = 0.8
EXAMPLE_EPSILONS: Final = tuple(0.5 * step for step in range(1, 21))
# Sections 3.1 and 4.3: the concentration at epsilon 2, the epsilon for the target.
PRINTED_EXAMPLE: Final = {2.0: 46.0}
NEEDED: Final = {"laplace": 5.2, "pm_01": 1.8}
_MOST: Final = 50.0


@completed
def example_rows(_: str, evidence: Evidence | None = None) -> Iterator[Row]:
    """Yield the concentration of Laplace noise, and the epsilon for .8 by mechanism.

    The latter is of quantity ``value``, with the setting "epsilon for .8".
    """
    for epsilon in EXAMPLE_EPSILONS:
        yield concentration_row("laplace", epsilon, THETA, PRINTED_EXAMPLE.get(epsilon))
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


def example_figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw the concentration against epsilon."""
    return mechanism_curves(
        {"Laplace noise on .5": select(results, quantity="concentration")},
        lambda row: float(row["epsilon"]),
        ("epsilon (smaller: more private)", f"within {THETA:g} of .5 (%)"),
    )


def example_conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the epsilons of the text beside their concentrations."""
    for name, epsilon in NEEDED.items():
        brings = 100 * published_concentration(name, epsilon, THETA)
        (row,) = select(results, quantity="value", method=name)
        yield (
            f"{name}: the paper says epsilon {epsilon:g} for {TARGET:g}; it brings"
            f" {brings:.2f} %, and {row['curvote']:.3f} is needed"
        )
