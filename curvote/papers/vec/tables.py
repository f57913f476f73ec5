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
from curvote.papers import drawing
from curvote.papers.evidence import Evidence
from curvote.papers.rows import (
    Row,
    column_as_ours,
    complete_rows,
    distinct_values,
    score_row,
    select,
)
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
            learns = baseline not in {"majority", "bayes"}
            yield score_row(summary, quantity) | {
                "protocol": baseline or summary["protocol"],
                "learner": summary["learner"] if learns else None,
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


def repeat_without_epsilon(rows: Sequence[Row]) -> list[Row]:
    """Repeat rows without epsilon at each epsilon of the others."""
    levels = sorted(distinct_values(rows, "epsilon"))
    return [
        row | {"epsilon": level}
        for row in rows
        for level in (levels if row["epsilon"] is None else [row["epsilon"]])
    ]


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
    row_of: dict[Cell, Row] = {}
    cells = []
    for row in accuracy_rows(evidence):
        setting = row["pipeline"].removeprefix(f"{name}-")
        cells.append(row | {"setting": setting, "n_classes": N_CLASSES[setting]})
        row_of[setting, row["protocol"], row["epsilon"]] = cells[-1]
    for cell, value in printed_accuracies().items():
        if f"{name}-{cell[0]}" in REPRODUCTIONS[name].pipelines:
            if cell not in row_of:
                raise UserError(
                    f"{name} prints a value for {cell[1]} on {cell[0]} at epsilon"
                    f" {cell[2]:g}, which its pipelines do not compute; take your own"
                    " of that name out of pipelines.yaml."
                )
            row_of[cell]["published"] = value
    return complete_rows(sort_rows(cells))


def printed_accuracies() -> Mapping[Cell, float]:
    """Return the printed accuracy in percent by data set, encoder and epsilon."""
    place = files("curvote.papers.vec") / "published" / "label_ldp_images.csv"
    printed: dict[Cell, float] = {}
    for row in csv.DictReader(place.read_text(encoding="utf-8").splitlines()):
        encoder = _SAME.get(row["method"], row["method"])
        cell = _PRINTED[row["dataset"]], encoder, float(row["epsilon"])
        printed[cell] = float(row["accuracy_pct"])
    return printed


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a data set: accuracy against epsilon; the printed one in dots."""
    charts = {}
    for setting in dict.fromkeys(row["setting"] for row in results):
        selected = select(results, setting=setting)
        printed_rows = [row for row in selected if row["published"]]
        charts[setting] = drawing.protocol_lines(
            repeat_without_epsilon(selected), LOOKS
        ) + [
            drawing.PlotLine(
                f"{line.label}, printed",
                replace(line.look, line=":", marker="", width=1.0, above=2),
                column_as_ours(line.rows, "published"),
            )
            for line in drawing.protocol_lines(printed_rows, LOOKS)
        ]
    return drawing.line_panels(charts, y=drawing.ACCURACY)


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
