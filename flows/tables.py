"""Tables on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from math import inf
from operator import itemgetter
from typing import Any

from rich.console import Console
from rich.table import Table

from curvote.chain.axis import Cell
from curvote.reporting.columns import columns

_STAGE_ACTION_REASON = itemgetter("stage", "action", "reason")


def print_rows(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    """Print chosen columns of plain rows."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(str(row[column]) for column in columns))
    _console().print(table)


def print_plan(rows: Sequence[dict[str, Any]]) -> None:
    """Print a plan, the cells of a stage that share action and reason in one line."""
    shown = []
    for (stage, action, reason), group in groupby(rows, _STAGE_ACTION_REASON):
        cells = [row["cell"] for row in group]
        cell = cells[0] if len(cells) == 1 else f"{len(cells)} cells"
        shown.append({"stage": stage, "cell": cell, "action": action, "reason": reason})
    print_rows(shown, ("stage", "cell", "action", "reason"))


def print_scores(rows: Sequence[dict[str, Any]]) -> None:
    """Print misclassification in percent, with standard errors, a block a learner."""
    rows = columns(rows)
    epsilons = sorted({row["level"] for row in rows})
    first = rows[0]
    title = f"{first['pipeline']}: misclassification in %, {first['replicates']} times"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("learner")
    table.add_column("method")
    for epsilon in epsilons:
        name = f"epsilon {epsilon:g}" if epsilon < inf else "no privacy"
        table.add_column(name, justify="right")
    for learner in dict.fromkeys(row["learner"] for row in rows if row["learner"]):
        _block(table, learner, _methods(rows, learner), epsilons)
    _console().print(table, "")


def _block(
    table: Table,
    learner: str,
    methods: Mapping[str, Mapping[float, str]],
    epsilons: Sequence[float],
) -> None:
    """Add the methods of one learner, whose name stands in the first line."""
    names = [learner, *[""] * (len(methods) - 1)]
    for name, (method, cells) in zip(names, methods.items(), strict=True):
        texts = (cells.get(epsilon, "") for epsilon in epsilons)
        table.add_row(name, method, *texts, style="bold" if method == "mrma" else None)
    table.add_section()


def print_outcomes(found: Mapping[Cell, Mapping[str, float]]) -> None:
    """Print what a production run knows: counts and the best estimated utility.

    Without votes nothing is known of how well the classifier does.
    """
    voted = all("utility" in row for row in found.values())
    title = "estimated from noised votes" if voted else "from noised reports"
    table = Table(box=None, title=title)
    table.add_column("cell")
    names = ("reports", "votes", "classifiers", "passed") if voted else ("reports",)
    for name in (*names, *["best utility"] * voted):
        table.add_column(name, justify="right")
    for cell, row in found.items():
        counts = [f"{row[name]:,.0f}" for name in names]
        table.add_row(str(cell), *counts, *([_utility(row)] if voted else []))
    _console().print(table, "")


def _utility(row: Mapping[str, float]) -> str:
    return f"{100 * row['utility']:.1f} ± {100 * row['utility_se']:.1f} %"


def _methods(
    rows: Sequence[dict[str, Any]], learner: str
) -> dict[str, dict[float, str]]:
    found: dict[str, dict[float, str]] = {}
    for row in rows:
        if row["learner"] in (learner, None):
            found.setdefault(row["method"], {})[row["level"]] = _percent(row)
    return found


def _percent(row: dict[str, Any]) -> str:
    error = "" if row["se"] is None else f" ± {100 * row['se']:.2f}"
    return f"{100 * row['misclassification']:.2f}{error}"


def _console() -> Console:
    console = Console()
    # A pipe has no width; folding numbers there would only make them unreadable.
    return console if console.is_terminal else Console(width=160)
