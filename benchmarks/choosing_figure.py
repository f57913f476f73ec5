"""Draw the figure of docs/choosing.md and write every number that stands there.

Run with ``python -m benchmarks.choosing_figure [--only tables]``. The figure simulates
`direct` for pairs of N and epsilon; the lines are what `curvote.theory` expects. Blocks
of docs/choosing.md that start with ``$ curvote advise`` are run again, tables between
``<!-- name -->`` and ``<!-- end -->`` are measured again. Seeds are fixed.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from typer.testing import CliRunner

from benchmarks.choosing_world import Constants, World, direct, mrma, repeated, votes
from curvote.report import figures, style
from curvote.systems.direct.system import choose_protocol
from curvote.theory import Signal, UtilityPrior, expect_direct, recommend, strengths

Array = NDArray[np.float64]

DOCS = Path(__file__).parents[1] / "docs"
PAGE, FIGURE = DOCS / "choosing.md", DOCS / "choosing.png"

SIZES = 10 ** np.arange(1.5, 4.6, 0.5)  # N epsilon^2
MARKERS = {0.25: "o", 0.5: "s", 1.0: "^", 2.0: "D"}
COLOURS = {"weak": "#d55e00", "middle": "#009e73", "strong": "#0072b2"}
FEATURES = (4, 10)
FEWEST, MOST, REPORTS = 8, 40_000, 400_000  # clients of a run, reports of a point

N, D, TIMES = 3000, 4, 100  # of the tables
PLACES: dict[str, Callable[[World], Constants]] = {
    "known exactly": lambda world: world.public,
    "from 200 volunteers": lambda w: Constants.of_volunteers(w.rng, D, 200),
    "from 50 volunteers": lambda w: Constants.of_volunteers(w.rng, D, 50),
    "from 20 volunteers": lambda w: Constants.of_volunteers(w.rng, D, 20),
    "from 10 volunteers": lambda w: Constants.of_volunteers(w.rng, D, 10),
    "centre off by 1 deviation": lambda _: Constants.of(D, off=1.0),
    "centre off by 3 deviations": lambda _: Constants.of(D, off=3.0),
    "scale 3 times too large": lambda _: Constants.of(D, times=3.0),
    "scale 3 times too small": lambda _: Constants.of(D, times=1 / 3),
}
NEEDED, TARGETS = (2, 4, 10, 20), {"half": 0.5, "most": 0.9}


@mpl.rc_context(style.RC)
def draw() -> None:
    """Write the figure."""
    figure, axes = style.make_panels(len(FEATURES), narrow=False, height=3.6)
    for ax, d in zip(axes, FEATURES, strict=True):
        for name, signal in strengths().items():
            _curve(ax, d, signal, COLOURS[name])
            _points(ax, d, signal, COLOURS[name])
        _arms(ax, d)
        ax.set_title(f"{d} numbers a record", pad=18)
    axes[0].set_ylabel("error on new records (%)")
    figures.draw_legend(figure, list(_legend()), 4)
    figures.write_atomically(FIGURE, figures.figure_bytes(figure, "png"))
    print(f"wrote {FIGURE}")


def _points(ax: Axes, d: int, signal: Signal, colour: str) -> None:
    for epsilon, marker in MARKERS.items():
        sizes = [s for s in SIZES if FEWEST <= s / epsilon**2 <= MOST]
        found = [_simulated(d, signal, round(s / epsilon**2), epsilon) for s in sizes]
        mean, error = 100 * np.array(found).T
        look = {"color": colour, "marker": marker, "ms": 5, "mec": style.PAPER}
        ax.errorbar(sizes, mean, yerr=2 * error, ls="", mew=0.6, elinewidth=0.9, **look)


def _simulated(d: int, signal: Signal, n: int, epsilon: float) -> tuple[float, float]:
    times = int(np.clip(REPORTS // n, 20, 200))
    return repeated(lambda k: direct(World.draw(signal, d, k), n, epsilon), times)


def _curve(ax: Axes, d: int, signal: Signal, colour: str) -> None:
    sizes = np.geomspace(SIZES[0], SIZES[-1], 25)
    told = [_expected(round(s * 4), d, 0.5, signal) for s in sizes]
    ax.plot(sizes, 100 * np.array(told), color=colour, lw=1.6, zorder=2)
    ax.axhline(100 * signal.best, color=colour, lw=0.9, ls=":", zorder=1)


def _expected(n: int, d: int, epsilon: float, signal: Signal) -> float:
    arm = choose_protocol(n, d, epsilon).arm or "mean"
    return expect_direct(n, d, epsilon, signal, arm=arm).error


def _arms(ax: Axes, d: int) -> None:
    """Say above the panel what protocol `auto` takes, and where that changes."""
    sizes = np.geomspace(SIZES[0] / 1.4, SIZES[-1] * 1.4, 2000)
    taken = np.array([choose_protocol(round(s * 400), d, 0.05).method for s in sizes])
    starts = np.flatnonzero(np.r_[True, taken[1:] != taken[:-1]])
    for start, end in zip(starts, [*starts[1:], len(sizes) - 1], strict=True):
        middle = np.sqrt(sizes[start] * sizes[end])
        where = {"transform": ax.get_xaxis_transform(), "ha": "center", "va": "bottom"}
        ax.text(middle, 1.01, taken[start], color=style.MUTED, size=7.5, **where)
        ax.axvline(sizes[start], color=style.LINE, lw=1.2, zorder=0)
    ax.set_xscale("log")
    ax.set_xticks([100, 1000, 10_000], ["100", "1,000", "10,000"])
    ax.set_xlim(sizes[0], sizes[-1])
    ax.set_ylim(0, 52)
    ax.set_xlabel("N epsilon²")
    ax.grid(axis="y")


def _legend() -> Iterator[Line2D]:
    for name, colour in COLOURS.items():
        yield Line2D([], [], color=colour, lw=1.6, label=f"{name}, expected")
    yield Line2D([], [], color=style.MUTED, lw=0.9, ls=":", label="without privacy")
    for epsilon, marker in MARKERS.items():
        look = {"color": style.MUTED, "marker": marker, "ms": 5, "ls": ""}
        yield Line2D([], [], label=f"epsilon {epsilon:g}, simulated", **look)


def constants() -> str:
    """Return what wrong public constants cost each protocol."""
    columns: dict[str, tuple[Signal, Callable[[World], float]]] = {}
    for epsilon, positive in ((1.0, 0.5), (5.0, 0.5), (1.0, 0.7)):
        signal = strengths(positive)["strong"]
        for name, way in _ways(epsilon, signal).items():
            shares = "" if positive == 0.5 else ", 70 : 30"
            columns[f"`{name}`, epsilon {epsilon:g}{shares}"] = signal, way
    rows = [
        [place, *(_place(way, public, signal) for signal, way in columns.values())]
        for place, public in PLACES.items()
    ]
    return _markdown(["centre and scale", *columns], rows)


def _ways(epsilon: float, signal: Signal) -> dict[str, Callable[[World], float]]:
    """Return the protocols to compare; `direct` alone where classes are unequal."""
    ways = {"direct": partial(direct, n=N, epsilon=epsilon)}
    if signal.positive != 0.5:
        return dict(ways)
    plan = asdict(recommend(N, D, epsilon, _prior(signal)))
    ways["votes"] = partial(votes, n=N, epsilon=epsilon)
    ways["mrma"] = partial(mrma, n=N, epsilon=epsilon, plan=plan)
    return dict(ways)


def _prior(signal: Signal) -> UtilityPrior:
    """Return the signal as MRMA's planner takes it, for tanh(z)."""
    return UtilityPrior(1 - signal.best, 0.63, positive=signal.positive, shape="cloud")


def _place(
    way: Callable[[World], float],
    public: Callable[[World], Constants],
    signal: Signal,
) -> str:
    def run(seed: int) -> float:
        world = World.draw(signal, D, seed)
        return way(replace(world, public=public(world)))

    mean, error = repeated(run, TIMES)
    return f"{100 * mean:.1f} ± {100 * error:.1f}"


def needed() -> str:
    """Return the N epsilon^2 that part of the gain over the majority takes."""
    known = strengths()
    head = ["numbers a record"]
    head += [f"{name}, {target}" for target in TARGETS for name in known]
    rows = [
        [
            str(d),
            *(_needed(d, s, part) for part in TARGETS.values() for s in known.values()),
        ]
        for d in NEEDED
    ]
    return _markdown(head, rows)


def _needed(d: int, signal: Signal, part: float) -> str:
    goal = signal.majority - part * (signal.majority - signal.best)
    low, high = 1.0, 7.0
    while high - low > 0.02:
        middle = (low + high) / 2
        n = round(4 * 10**middle)
        reached = expect_direct(n, d, 0.5, signal).error <= goal
        low, high = (low, middle) if reached else (middle, high)
    return f"{float(f'{10**high:.2g}'):,.0f}"


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


TABLES: dict[str, Callable[[], str]] = {"constants": constants, "needed": needed}


def advised(command: str) -> str:
    """Return what a command line prints."""
    from curvote.cli.app import app

    told: Any = CliRunner().invoke(app, shlex.split(command)[1:])
    if told.exit_code:
        raise SystemExit(f"{command}: {told.output or told.exception}")
    return str(told.stdout).rstrip()


def fill(text: str) -> str:
    """Return the page with its commands run and its tables measured."""

    def run(found: re.Match[str]) -> str:
        return f"```console\n$ {found[1]}\n{advised(found[1])}\n```"

    def measure(found: re.Match[str]) -> str:
        return f"<!-- {found[1]} -->\n{TABLES[found[1]]()}\n<!-- end -->"

    text = re.sub(
        r"```console\n\$ (curvote advise [^\n]*)\n.*?```", run, text, flags=re.DOTALL
    )
    return re.sub(r"<!-- (\w+) -->\n.*?<!-- end -->", measure, text, flags=re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("tables", "figure"))
    only = parser.parse_args().only
    if only != "tables":
        draw()
    if only != "figure":
        PAGE.write_text(fill(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
