"""Rows of `curvote reproduce` for MRMA: published, curvote and corrected values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from curvote.errors import UserError
from curvote.reporting import methods
from curvote.reproduce.mrma.names import REPRODUCTIONS, MrmaEntry
from curvote.reproduce.mrma.printed import PrintedCell, printed_cells
from curvote.reproduce.rows import Row, complete_rows, percent, select
from curvote.run.config.settings import PROTOCOL

# Axes of a grid with a meaning of their own; the others make up ``setting``.
_OWN_AXES = (PROTOCOL, "form", "d", "representation", "split")
USEFUL = "useful"
_ERROR = "misclassification"
_GROUPS = (None, USEFUL, "1", "2", "3")
_PLACES = ("representation", "d", "learner", "split", "method", "setting")
_CONTEST = ("setting", "protocol", "learner", "method")


def comparison(name: str, summaries: Iterable[Row]) -> list[Row]:
    """Return the rows of `reproduce NAME` from the score rows of its pipelines.

    ``summaries`` are rows of `curvote.run.results.summary` and of `evidence`,
    value and se in [0, 1]. The result has ``COLUMNS``; published, curvote,
    corrected and se are in percent points, se is curvote's. Where a value is printed,
    ``curvote`` follows the published definitions and ``corrected`` the right ones;
    elsewhere ``curvote`` follows the right ones. z = (curvote - published) /
    sqrt(se^2 + (100 sd)^2 / 500), None where nothing is printed or no error is known.
    In a contest ``setting`` is the pipeline without the contest's name, and the
    majority stands once: what every protocol brings beside itself is left out.

    Raises:
        UserError: a printed cell that the pipelines do not compute.
    """
    entry = REPRODUCTIONS[name]
    rows = [_summary_row(entry, summary) for summary in summaries]
    selected = [row for row in rows if _is_selected(entry, row)]
    if entry.published:
        cells = printed_cells(entry.published)
        return complete_rows(_compare_cell(entry, cell, selected) for cell in cells)
    if entry.contest:
        return complete_rows(_sort_rows(_drop_baselines(selected), _CONTEST))
    return complete_rows(
        _sort_rows(row for row in selected if row["form"] != "published")
    )


def count_agreeing(entry: MrmaEntry, rows: Iterable[Row]) -> tuple[int, int]:
    """Return how many printed cells agree, and how many there are."""
    scored = [row for row in rows if row["z"] is not None]
    return sum(_agrees(entry, row) for row in scored), len(scored)


def _agrees(entry: MrmaEntry, row: Row) -> bool:
    points = entry.points.get(row["learner"], 0.0)
    close = abs(row["curvote"] - row["published"]) <= points
    return bool(close or abs(row["z"]) <= entry.limit)


def _summary_row(entry: MrmaEntry, summary: Row) -> Row:
    axes = summary.get("setting", {})
    names = {name: summary[name] for name in ("pipeline", "protocol", "epsilon")}
    return names | {
        "form": axes.get("form"),
        "setting": _setting_name(entry, summary["pipeline"], axes),
        "learner": summary["learner"],
        "representation": _representation(summary, axes),
        "d": int(axes["d"]) if "d" in axes else summary.get("d"),
        "method": _method_name(summary),
        "split": axes.get("split"),
        "group": summary.get("group"),
        "quantity": entry.quantity,
        "published": None,
        "curvote": percent(summary["value"]),
        "corrected": None,
        "se": percent(summary["se"]),
        "z": None,
    }


def _method_name(summary: Row) -> str:
    """Return the method, or the measure where it is no error."""
    metric = str(summary["metric"])
    return str(summary["method"]) if metric == _ERROR else metric


def _setting_name(
    entry: MrmaEntry, pipeline: str, axes: Mapping[str, str]
) -> str | None:
    prefix = [pipeline.removeprefix(f"{entry.name}-")] if entry.contest else []
    axis_texts = (
        f"{axis}={text}" for axis, text in axes.items() if axis not in _OWN_AXES
    )
    return " ".join([*prefix, *axis_texts]) or None


def _representation(summary: Row, axes: Mapping[str, str]) -> str | None:
    """Return the representation by axis or setting."""
    if summary["pipeline"] == "table-a1-initial":
        return "initial"
    return axes.get("representation", summary.get("representation"))


def _is_selected(entry: MrmaEntry, row: Row) -> bool:
    if row["split"]:
        final = "mrma" if row["split"] == "single" else "federated"
        return bool(row["group"]) and row["method"] == final
    return not entry.methods or row["method"] in entry.methods


def _drop_baselines(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield rows without the majority, unless it stands alone."""
    cells = {_cell_key(row) for row in rows if row["method"] != "majority"}
    for row in rows:
        if row["method"] != "majority" or _cell_key(row) not in cells:
            yield row


def _cell_key(row: Row) -> tuple[str | float | None, ...]:
    return row["setting"], row["protocol"], row["epsilon"]


def _compare_cell(entry: MrmaEntry, cell: PrintedCell, rows: list[Row]) -> Row:
    """Return the row of a printed cell beside curvote's value."""
    forms = {row["form"]: row for row in select(rows, **dict(cell.key))}
    if not forms:
        named = ", ".join(f"{name} {value}" for name, value in cell.key)
        raise UserError(
            f"{entry.name} prints a value for {named}, which pipeline"
            f" {' or '.join(entry.pipelines)} does not compute; take your own of that"
            " name out of pipelines.yaml."
        )
    match = forms.get("published") or next(iter(forms.values()))
    right = forms.get("corrected") if "published" in forms else None
    return match | {
        "published": cell.percent,
        "corrected": right and right["curvote"],
        "z": _z_score(match["curvote"] - cell.percent, match["se"], cell.variance),
    }


def _z_score(difference: float, se: float | None, variance: float) -> float | None:
    total = None if se is None else se**2 + variance
    return difference / math.sqrt(total) if total else None


def _sort_rows(rows: Iterable[Row], places: Sequence[str] = _PLACES) -> list[Row]:
    """Sort by group, then by what tells lines apart, as it came; epsilon is last."""
    listed = list(rows)
    ranks = {name: _appearance_ranks(listed, name) for name in places}
    ranks["method"] = {
        name: rank for rank, name in enumerate(methods.methods_by_name())
    }

    def sort_key(row: Row) -> tuple[float, ...]:
        return (
            _GROUPS.index(row["group"]),
            *(ranks[name].get(row[name], math.inf) for name in places),
            math.inf if row["epsilon"] is None else row["epsilon"],
        )

    return sorted(listed, key=sort_key)


def _appearance_ranks(rows: Sequence[Row], name: str) -> dict[Any, float]:
    """Return the place of each value by first appearance; rows without one are last."""
    values = dict.fromkeys(row[name] for row in rows)
    return {v: math.inf if v is None else rank for rank, v in enumerate(values)}
