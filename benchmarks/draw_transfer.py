"""Draw docs/transfer.png: accuracy against epsilon, each of four hospitals the target.

Run with ``python -m benchmarks.draw_transfer FOLDER``. FOLDER has a file TARGET.json
for each hospital, the output of ``curvote scores heart --json`` after

    curvote run heart --set transfer.target=TARGET
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from curvote.chain.measure import Look
from curvote.papers.figure import Chart, PlotLine, line_panels, repeat_at_levels
from curvote.papers.rows import Row, score_row
from curvote.report import figures, style
from curvote.systems.transfer.measures import METHODS

FIGURE = Path(__file__).parents[1] / "docs" / "transfer.png"
TITLES = {
    "hungarian": "Hungary",
    "cleveland": "Cleveland",
    "switzerland": "Switzerland",
    "va": "Long Beach",
}
LOOKS = {each.name: each.look for each in METHODS}
CLEAN = "clean"
# (protocol, method or None: whichever it took) and how it is drawn.
DRAWN: dict[tuple[str, str | None], tuple[str, Look]] = {
    ("auto", None): ("auto", LOOKS["aligned"]),
    ("moments", "precision"): ("moments, precision", LOOKS["precision"]),
    ("cells", "precision"): ("cells, precision", LOOKS["adapt_all"]),
    ("kernel", "adapt_samp"): ("the paper's AdaptSamp", LOOKS["adapt_samp"]),
    ("kernel", "adapt_tar"): ("the target alone", LOOKS["adapt_tar"]),
    ("majority", None): ("majority", LOOKS["majority"]),
    (CLEAN, "pooled"): ("no privacy, pooled", Look(style.INK, "", line=(0, (4, 2)))),
}


def drawn(folder: Path) -> Figure:
    """Return the figure of the files in ``folder``."""
    chart = {
        title: _lines(json.loads((folder / f"{target}.json").read_text("utf-8")))
        for target, title in TITLES.items()
    }
    return line_panels(chart, Chart((), (), y="accuracy on new patients (%)"))


def _lines(found: list[Row]) -> list[PlotLine]:
    """Return what is drawn of one target's scores, as far as it is there.

    What knows no epsilon is the same at each.
    """
    rows = repeat_at_levels([score_row(row, "accuracy") for row in found], "epsilon")
    own = {
        (protocol, method): [
            row
            for row in rows
            if row["protocol"] == protocol and method in {None, row["method"]}
        ]
        for protocol, method in DRAWN
    }
    return [PlotLine(*DRAWN[key], rows) for key, rows in own.items() if rows]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    with mpl.rc_context(style.RC):
        made = drawn(parser.parse_args().folder)
        figures.write_atomically(FIGURE, figures.figure_bytes(made, "png"))
    print(f"wrote {FIGURE}")
