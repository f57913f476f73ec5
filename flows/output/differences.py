"""What `curvote diff` prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from curvote.flows.output.tables import print_rows
from curvote.flows.output.terminal import from_here
from curvote.run.changes import Renamed, grouped
from curvote.run.difference import Difference
from curvote.run.history import RunRecord
from curvote.run.score_changes import Change

_KEYS = ("stage", "cell", "reasons")


def print_difference(found: Difference, *, every: bool, page: Path | None) -> None:
    """Print settings, keys, scores and where figures are; ``every``: equal ones too."""
    for which, run in (("A", found.a), ("B", found.b)):
        print(f"{which}: {run_words(run)}")
    print("\nconfiguration")
    for setting in found.settings:
        print(f"  {setting}")
    print("" if found.settings else "  equal\n", end="")
    print(f"\nkeys: {len(found.keys)} differ, {found.same} are equal")
    if found.keys:
        print_rows(_keys(found.keys, every), _KEYS)
    _print_scores(found, every)
    _print_pages(found, page)


def run_words(run: RunRecord) -> str:
    """Return a run in one line: id, pipeline, when, its overrides, its state."""
    options = "".join(f" --set {override}" for override in run.overrides)
    return f"{run.id}, {run.pipeline}{options}, {run.started}, {run.status}"


def _keys(keys: Sequence[Renamed], every: bool) -> list[dict[str, Any]]:
    """Return a row for each stage and its reasons; ``every``: for each cell."""
    each = [(one.stage, str(one.cell), "; ".join(one.reasons)) for one in keys]
    rows = each if every else grouped(keys)
    return [dict(zip(_KEYS, row, strict=True)) for row in rows]


def _print_scores(found: Difference, every: bool) -> None:
    print("\nscores: " + " ".join(found.notes))
    if not found.scores:
        return
    print(found.count)
    shown = found.scores if every else found.beyond
    if shown:
        columns = ("cell", "method", "metric", "A", "B", "B - A", "se", "z", "verdict")
        print_rows([_score(change) for change in shown], columns)


def _score(change: Change) -> dict[str, Any]:
    values = {"A": change.a, "B": change.b, "B - A": change.difference}
    told = {name: change.shown(value) for name, value in values.items()}
    se = "" if change.se is None else change.shown(change.se)
    z = "" if change.z is None else f"{change.z:+.1f}"
    own = {"cell": str(change.cell), "method": change.where["method"]}
    sure = {"metric": change.metric.name, "se": se, "z": z, "verdict": change.said}
    return own | told | sure


def _print_pages(found: Difference, page: Path | None) -> None:
    print("\nfigures")
    if page is not None:
        print(f"  side by side: {from_here(page)}")
        return
    for which, run, own in zip("AB", (found.a, found.b), found.pages, strict=True):
        print(f"  {which}: {from_here(own) if own else _no_page(run)}")
    print("  `--page` draws them side by side")


def _no_page(run: RunRecord) -> str:
    if run.status != "completed":
        return f"none: the run is {run.status}"
    return f"none; `curvote report {run.pipeline} --run {run.id}` draws them"
