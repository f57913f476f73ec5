"""Draw docs/benchmarks.png: the ratios of every benchmark over commits."""

from __future__ import annotations

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.history import KEPT, ROOT, Entry, entries

FIGURE = ROOT / "docs" / "benchmarks.png"
ACROSS = 2


def draw() -> None:
    """Draw one small panel for each history; nothing where there is none."""
    found = {
        path.stem: entries(path.read_text("utf-8"))
        for path in sorted(KEPT.glob("*.jsonl"))
    }
    found = {name: lines for name, lines in found.items() if any_ratio(lines)}
    if not found:
        return
    down = -(-len(found) // ACROSS)
    with mpl.rc_context({"font.size": 7}):
        figure = Figure(figsize=(5 * ACROSS, 1.8 * down), layout="constrained")
        panels = figure.subplots(down, ACROSS, squeeze=False).flat
        for axes, (name, lines) in zip(panels, found.items(), strict=False):
            panel(axes, name, lines)
        for axes in list(figure.axes)[len(found) :]:
            axes.axis("off")
        figure.savefig(FIGURE, dpi=120)


def any_ratio(lines: list[Entry]) -> bool:
    return any(line.ratios for line in lines)


def panel(axes: Axes, name: str, lines: list[Entry]) -> None:
    """Draw the ratios of one benchmark, named by as many commits as have room."""
    names = sorted({ratio for line in lines for ratio in line.ratios})
    for ratio in names:
        at = [place for place, line in enumerate(lines) if ratio in line.ratios]
        values = [lines[place].ratios[ratio] for place in at]
        axes.plot(at, values, marker=".", lw=0.8, label=ratio)
    few = range(0, len(lines), max(1, len(lines) // 4))
    axes.set_xticks(list(few), [lines[place].commit[:7] for place in few])
    axes.set_title(name)
    values = [v for line in lines for v in line.ratios.values()]
    if min(values) > 0 and max(values) > 10 * min(values):
        axes.set_yscale("log")
    axes.set_ylim(bottom=None if axes.get_yscale() == "log" else min(0, *values))
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
