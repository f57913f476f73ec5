"""Tables 1, 2, 3: networks on images, and accuracy rows and lines of all figures."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any, Final

from matplotlib.figure import Figure

from curvote.base.errors import UserError
from curvote.chain.measure import Look
from curvote.papers.drawing import PlotLine, distinct_values, label_y_axes, line_panels
from curvote.papers.evidence import Evidence
from curvote.papers.rows import Row, complete_rows, score_row, select
from curvote.papers.vec.entries import REPRODUCTIONS
from curvote.report import style

AUTO: Final = "auto"
# What a cell has beside its own model, whatever its encoder.
BASELINES: Final = ("majority", "clean", "bayes")
_PLACES: Final = (
    "setting",
    "n_classes",
    "quantity",
    "protocol",
    "learner",
    "method",
    "epsilon",
)
LOOKS: Final = {
    "rr": Look("#6460c8", "x", ":"),
    "lp_2st": Look("#6460c8", "v", "--"),
    "alibi": Look("#cc79a7", "P"),
    "vector": Look(style.BLUE, "s", above=5),
    "oue": Look("#56b4e9", "^"),
    "hadamard": Look(style.GREEN, "D", size=4),
    "subset": Look("#d98c00", "h", "--", above=5),
    AUTO: Look(style.USED, "o", width=2.4, size=6, above=6),
    "majority": Look(style.UNUSED, "", ":"),
    "clean": Look(style.MUTED, "", "--", width=1.2),
    "bayes": Look(style.INK, "", "-", width=1.0),
}


def accuracy_rows(evidence: Evidence, quantity: str = "accuracy") -> Iterator[Row]:
    """Yield the rows of a measured quantity; rows without it are left out.

    ``protocol`` is the label of the encoder, or one of `BASELINES`, which stand once:
    the majority as `auto` decodes it. ``axes`` holds the labels of the row's setting.
    """
    for summary in evidence.summaries:
        method = summary["method"]
        baseline = method if method in BASELINES else None
        named = summary["protocol"] in {AUTO, baseline}
        if summary.get(quantity) is not None and (named or not baseline):
            yield score_row(summary, quantity) | {
                "protocol": baseline or summary["protocol"],
                "learner": None
                if baseline in {"majority", "bayes"}
                else summary["learner"],
                "axes": summary.get("setting", {}),
            }


def sort_rows(rows: Iterable[Row]) -> list[Row]:
    """Return rows by setting, then by protocol, learner and epsilon.

    Of several that say the same the first is kept: a baseline stands beside each
    learner.
    """
    first: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        first.setdefault(tuple(row[name] for name in _PLACES), row)
    listed = list(first.values())
    settings = distinct_values(listed, "setting")
    ranks = {name: rank for rank, name in enumerate(LOOKS)}

    def sort_key(row: Row) -> tuple[Any, ...]:
        return (
            settings.index(row["setting"]),
            row["quantity"],
            ranks[row["protocol"]],
            str(row["learner"]),
            row["method"],
            row["n_classes"],
            float("inf") if row["epsilon"] is None else row["epsilon"],
        )

    return sorted(listed, key=sort_key)


def protocol_lines(
    rows: Sequence[Row], looks: Mapping[str, Look] = LOOKS
) -> list[PlotLine]:
    """Return a line for each protocol among the rows, in the order of `LOOKS`."""
    return [
        PlotLine(name, look, selected)
        for name, look in looks.items()
        if (selected := select(rows, protocol=name))
    ]


def repeat_without_epsilon(rows: Sequence[Row]) -> list[Row]:
    """Repeat rows without epsilon at each epsilon of the others."""
    levels = sorted(distinct_values(rows, "epsilon"))
    return [
        row | {"epsilon": level}
        for row in rows
        for level in (levels if row["epsilon"] is None else [row["epsilon"]])
    ]


across: Final = "epsilon"
N_CLASSES: Final = {"mnist": 10, "fashion-mnist": 10, "cifar-10": 10, "cifar-100": 100}
_PRINTED: Final = {
    "mnist": "mnist",
    "fashion_mnist": "fashion-mnist",
    "cifar10": "cifar-10",
    "cifar100": "cifar-100",
}
# In one round every prior is uniform: LP-1ST is randomized response.
_SAME: Final = {"lp_1st": "rr"}

Cell = tuple[str, str, float]


def rows(name: str, evidence: Evidence) -> list[Row]:
    """Return the accuracy by ``setting`` (the data set), printed values beside it.

    Raises:
        UserError: a printed cell that the pipelines do not compute.
    """
    cells = [_table_row(name, row) for row in accuracy_rows(evidence)]
    row_of = {_cell_key(row): row for row in cells}
    for cell, value in printed_accuracies().items():
        if f"{name}-{cell[0]}" in REPRODUCTIONS[name].pipelines:
            if cell not in row_of:
                raise UserError(_missing_row(name, cell))
            row_of[cell]["published"] = value
    return complete_rows(sort_rows(cells))


def _table_row(name: str, row: Row) -> Row:
    setting = row["pipeline"].removeprefix(f"{name}-")
    return row | {"setting": setting, "n_classes": N_CLASSES[setting]}


def _cell_key(row: Row) -> Cell:
    return row["setting"], row["protocol"], row["epsilon"]


def _missing_row(name: str, cell: Cell) -> str:
    return (
        f"{name} prints a value for {cell[1]} on {cell[0]} at epsilon {cell[2]:g},"
        " which its pipelines do not compute; take your own of that name out of"
        " pipelines.yaml."
    )


def printed_accuracies() -> Mapping[Cell, float]:
    """Return the printed accuracy in percent by data set, encoder and epsilon."""
    place = files("curvote.papers.vec") / "published" / "label_ldp_images.csv"
    lines_of_file = place.read_text(encoding="utf-8").splitlines()
    return {
        _row_label(row): float(row["accuracy_pct"])
        for row in csv.DictReader(lines_of_file)
    }


def _row_label(row: Mapping[str, Any]) -> Cell:
    method = row["method"]
    return _PRINTED[row["dataset"]], _SAME.get(method, method), float(row["epsilon"])


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a data set: accuracy against epsilon; the printed one in dots."""
    names = dict.fromkeys(row["setting"] for row in results)
    fig = line_panels(
        {name: _panel_lines(select(results, setting=name)) for name in names}
    )
    label_y_axes(fig.axes, "accuracy (%)")
    return fig


def _panel_lines(results: Sequence[Row]) -> list[PlotLine]:
    """Return a line for each protocol, and one more where it is printed."""
    chart_lines = protocol_lines(repeat_without_epsilon(results))
    for name, look in LOOKS.items():
        printed_rows = [
            row for row in select(results, protocol=name) if row["published"]
        ]
        if printed_rows:
            dots = replace(look, line=":", marker="", width=1.0, above=2)
            paper = [
                row | {"curvote": row["published"], "se": None} for row in printed_rows
            ]
            chart_lines.append(PlotLine(f"{name}, printed", dots, paper))
    return chart_lines


def terminal_rows(results: Sequence[Row]) -> Sequence[Row]:
    """Return all rows."""
    return results


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the distance from print, and the best unprinted encoder."""
    apart = [
        (row["curvote"] - row["published"], row) for row in results if row["published"]
    ]
    within = sum(abs(gap) <= 3 for gap, _ in apart)
    yield f"{within} of {len(apart)} printed cells within 3 points"
    yield "LP-1ST, which table 2 prints, is rr: its only prior is uniform"
    for gap, row in sorted(apart, key=lambda pair: -abs(pair[0]))[:3]:
        place = f"{row['setting']}, {row['protocol']}, epsilon {row['epsilon']:g}"
        yield f"far: {gap:+.1f} points ({place})"
