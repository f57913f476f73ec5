"""Concentration of QCU's mechanisms at the value .5: figures 2 and 4."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import brentq

from curvote.base.errors import InternalError
from curvote.mechanisms.base import Mixture, product_law
from curvote.papers.figure import PlotLine, draw_panels
from curvote.papers.qcu import laws
from curvote.papers.reproduction import Evidence
from curvote.papers.rows import (
    Row,
    axis_value,
    beside_published,
    published_rows,
    select,
)
from curvote.systems.utility.method.profile import concentration_probability

VALUE: Final = np.array([[0.5]])
EPSILONS: Final = (2.0, 4.0, 6.0)
THETAS: Final = tuple(round(0.01 * step, 2) for step in range(10, 51))
MECHANISMS: Final = ("laplace", "pm_01", "sw_01", "k_rr", "exponential")


def published_concentration(name: str, epsilon: float, theta: float) -> float:
    """Return the probability by the definitions of the appendix.

    Laplace noise is not drawn again here; k-RR has 101 levels, so has the exponential
    mechanism, with rate epsilon/2: it spends half of epsilon.
    """
    law: laws.PaperLaw
    if name == "exponential":
        law = laws.exponential(epsilon / 2, size=101)
    elif name == "k_rr":
        law = laws.kept_rr(epsilon, other_levels=100)
    else:
        law = laws.paper_law(name, epsilon)
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


def _concentration_row(name: str, epsilon: float, theta: float) -> Row:
    return {
        "setting": f"theta={theta:g}",
        "epsilon": epsilon,
        "method": name,
        "quantity": "concentration",
        "curvote": 100 * published_concentration(name, epsilon, theta),
        "corrected": 100 * corrected_concentration(name, epsilon, theta),
    }


def theta_rows(_: Evidence) -> Iterator[Row]:
    """Yield the concentration by ``setting`` (theta), ``method`` and epsilon."""
    cells = product(EPSILONS, MECHANISMS, THETAS)
    rows = (_concentration_row(name, epsilon, t) for epsilon, name, t in cells)
    return beside_published(rows, published_rows("qcu", "qcu_text.csv", figure="4"))


def theta_figure(rows: Sequence[Row], _: Evidence) -> Figure:
    """Draw a panel an epsilon: the concentration against theta."""
    panels = {f"epsilon {level:g}": select(rows, epsilon=level) for level in EPSILONS}
    return _mechanism_curves(panels, "theta", ("theta", "within theta of .5 (%)"))


def _mechanism_curves(
    panels: Mapping[str, Sequence[Row]], x: str, labels: tuple[str, str]
) -> Figure:
    """Draw a line for each mechanism; dotted is ours, where it differs.

    ``labels`` name the axes, x and y.
    """

    def draw(ax: Axes, title: str) -> None:
        for name, look in laws.LOOKS.items():
            inside = select(panels[title], method=name)
            inside.sort(key=lambda row: float(axis_value(row, x)))
            at = [axis_value(row, x) for row in inside]
            for column, line in (("curvote", "-"), ("corrected", ":")):
                values = [row[column] for row in inside]
                ax.plot(at, values, color=look.colour, ls=line, lw=1.4)
        ax.set_xlabel(labels[0])
        ax.grid(axis="y")

    names = {row["method"] for rows in panels.values() for row in rows}
    handles = [
        PlotLine(name, replace(look, marker=""), ()).handle()
        for name, look in laws.LOOKS.items()
        if name in names
    ]
    return draw_panels(list(panels), draw, 3.4, y=labels[1], handles=handles)


def theta_terminal_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows at tenths."""
    tenths = {f"theta={step / 10:g}" for step in range(1, 6)}
    return [row for row in rows if row["setting"] in tenths]


def theta_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the leading mechanism where the paper says that it is PM."""
    for epsilon in EPSILONS:
        changes, before = [], None
        for theta in THETAS[:-1]:
            some = select(rows, epsilon=epsilon, setting=f"theta={theta:g}")
            best = max(some, key=lambda row: float(row["curvote"]))["method"]
            if best != before:
                changes.append(f"{best} from theta {theta:g}")
            before = best
        yield f"  epsilon {epsilon:g}: {', '.join(changes)}"


THETA: Final = 0.3
TARGET: Final = 0.8
_MOST: Final = 50.0


def example_rows(_: Evidence) -> Iterator[Row]:
    """Yield the concentration of Laplace noise, and the epsilon for .8 by mechanism.

    The latter is of quantity ``value``, with the setting "epsilon for .8".
    """
    rows = [_concentration_row("laplace", 0.5 * step, THETA) for step in range(1, 21)]
    rows += [
        {
            "setting": f"epsilon for {TARGET:g}",
            "method": name,
            "quantity": "value",
            "curvote": _needed_epsilon(published_concentration, name),
            "corrected": _needed_epsilon(corrected_concentration, name),
        }
        for name in MECHANISMS
    ]
    return beside_published(rows, published_rows("qcu", "qcu_text.csv", figure="2"))


def _needed_epsilon(
    concentration: Callable[[str, float, float], float], name: str
) -> float:
    def shortfall(epsilon: float) -> float:
        return concentration(name, epsilon, THETA) - TARGET

    return float(brentq(shortfall, 0.01, _MOST))


def example_figure(rows: Sequence[Row], _: Evidence) -> Figure:
    """Draw the concentration against epsilon."""
    labels = "epsilon (smaller: more private)", f"within {THETA:g} of .5 (%)"
    panels = {"Laplace noise on .5": select(rows, quantity="concentration")}
    return _mechanism_curves(panels, "epsilon", labels)


def example_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the epsilons of the text beside their concentrations."""
    for row in select(rows, quantity="value"):
        name, epsilon = row["method"], row["published"]
        if epsilon is not None:
            brings = 100 * published_concentration(name, epsilon, THETA)
            yield (
                f"{name}: the paper says epsilon {epsilon:g} for {TARGET:g}; it brings"
                f" {brings:.2f} %, and {row['curvote']:.3f} is needed"
            )
