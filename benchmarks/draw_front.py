"""Draw docs/front.png: the error of `auto` beside the best published method.

Run with ``python -m benchmarks.draw_front``. The numbers are those of the table in
docs/clients.md, which ``curvote reproduce beyond --replicates 200`` measured.
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from curvote.report import figures, style

DOCS = Path(__file__).parents[1] / "docs"
PANELS = {
    "simulated": "Simulated curves, 3,000 people",
    "phonemes": "Spoken sounds, 1,450 people",
    "diabetes": "Diabetes records, 2,214 people",
}
EPSILONS = (0.5, 1, 2, 5, 10)


def rows() -> dict[str, list[list[float]]]:
    """Return the numbers of each cell of the table, by setting."""
    text = (DOCS / "clients.md").read_text(encoding="utf-8")
    found = {}
    for line in text.partition("`auto` (best published method)")[2].splitlines():
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        if name in PANELS and name not in found:
            found[name] = [[float(x) for x in re.findall(r"[\d.]+", c)] for c in cells]
    return found


def drawn() -> Figure:
    """Return three panels of error against epsilon, with the ends of the scale."""
    figure = Figure(figsize=(9, 2.9), layout="constrained")
    table = rows()
    for axes, (name, title) in zip(figure.subplots(1, 3), PANELS.items(), strict=True):
        cells = table[name]
        auto, published = zip(*cells[: len(EPSILONS)], strict=True)
        (majority,), (clean,) = cells[len(EPSILONS) : len(EPSILONS) + 2]
        places = range(len(EPSILONS))
        muted, green = style.MUTED, style.GREEN
        axes.plot(places, published, "o-", c=muted, label="best published method")
        axes.plot(places, auto, "o-", c="#6460c8", lw=3, label="curvote")
        axes.axhline(majority, c=muted, ls=(0, (4, 2)), label="guessing the majority")
        axes.axhline(clean, c=green, label="no privacy at all")
        axes.set(title=title, xlabel="epsilon (smaller: more private)")
        axes.set_ylim(0, 1.08 * max(majority, *published))
        axes.set_xticks(places, [f"{epsilon:g}" for epsilon in EPSILONS])
        axes.grid(axis="y")
    figure.axes[0].set_ylabel("error on new people (%)")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    order = [1, 0, 2, 3]
    figure.legend(
        [handles[i] for i in order],
        [labels[i] for i in order],
        loc="outside upper center",
        ncols=4,
    )
    return figure


if __name__ == "__main__":
    with mpl.rc_context(style.RC):
        figures.write_atomically(
            DOCS / "front.png", figures.figure_bytes(drawn(), "png")
        )
